"""A bad TLS file is named with its fault, in one sentence, before anything is served."""

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.service.certificates import certificate
from typer.testing import CliRunner

from counterpoint.cli import app
from counterpoint.errors import InvalidParameter
from counterpoint.service.tls import check


@pytest.fixture
def pem(tmp_path):
    """A folder with a certificate and its key."""
    certificate(tmp_path)
    return tmp_path


def key(folder, name="other.pem", password=None):
    """Another private key, encrypted if there is a password."""
    made = ec.generate_private_key(ec.SECP256R1())
    seal = serialization.NoEncryption() if password is None else serialization.BestAvailableEncryption(password)
    data = made.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, seal)
    (folder / name).write_bytes(data)


def refusal(folder, certificate="certificate.pem", private_key="private.pem"):
    with pytest.raises(InvalidParameter) as caught:
        check(str(folder / certificate), str(folder / private_key))
    return str(caught.value)


def test_a_certificate_and_its_key_are_taken(pem):
    check(str(pem / "certificate.pem"), str(pem / "private.pem"))


def test_a_file_that_cannot_be_read_is_named(pem):
    assert refusal(pem, "cert.pem") == f"the certificate '{pem / 'cert.pem'}' cannot be read: No such file or directory"
    assert "private key" in refusal(pem, private_key="key.pem")
    assert "Is a directory" in refusal(pem, private_key=".")


def test_files_that_are_something_else_are_told_what_they_should_be(pem):
    (pem / "empty.pem").write_bytes(b"")
    assert "is not a certificate in PEM" in refusal(pem, "empty.pem")
    assert "is not a certificate in PEM" in refusal(pem, "private.pem")
    assert "is not a private key in PEM" in refusal(pem, private_key="certificate.pem")


def test_a_key_of_another_certificate_is_refused(pem):
    key(pem)
    assert "is not that of the certificate" in refusal(pem, private_key="other.pem")


def test_an_encrypted_key_is_refused_instead_of_asking_for_its_password(pem):
    key(pem, "sealed.pem", b"secret")
    assert "is encrypted" in refusal(pem, private_key="sealed.pem")


def test_a_chain_begins_with_the_certificate_of_the_service(pem):
    own = (pem / "certificate.pem").read_bytes()
    (pem / "issuer").mkdir()
    certificate(pem / "issuer")
    issuer = (pem / "issuer" / "certificate.pem").read_bytes()
    (pem / "chain.pem").write_bytes(own + issuer)
    check(str(pem / "chain.pem"), str(pem / "private.pem"))
    (pem / "turned.pem").write_bytes(issuer + own)
    assert "comes first" in refusal(pem, "turned.pem")


@pytest.mark.parametrize(("days", "words"), [(-3, "ended on"), (3, "is valid from")])
def test_a_certificate_that_no_client_accepts_now_is_refused(pem, days, words):
    private = serialization.load_pem_private_key((pem / "private.pem").read_bytes(), None)
    own = x509.load_pem_x509_certificate((pem / "certificate.pem").read_bytes())
    begins = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=days)
    made = (
        x509.CertificateBuilder(own.issuer, own.subject, own.public_key(), 7)
        .not_valid_before(begins)
        .not_valid_after(begins + datetime.timedelta(days=1))
        .sign(private, own.signature_hash_algorithm)
    )
    (pem / "certificate.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    assert words in refusal(pem)


@pytest.mark.parametrize("command", ["serve", "witness"])
def test_the_command_shows_one_sentence_and_makes_nothing(pem, monkeypatch, command):
    monkeypatch.chdir(pem)
    before = sorted(pem.iterdir())
    flags = ["--certificate", "certificate.pem", "--private-key", "certificate.pem"]
    said = CliRunner().invoke(app, [command, "--port", "0", *flags])
    assert said.exit_code == 1 and sorted(pem.iterdir()) == before
    assert said.output.strip() == (
        "InvalidParameter: 'certificate.pem' is not a private key in PEM (-----BEGIN PRIVATE KEY-----)"
    )
