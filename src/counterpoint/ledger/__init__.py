"""What must not be lost: sessions, launches and answers, on a signed chain."""
