"""A browser for tests without a window: it keeps cookies, signs in, and sends the forms that it finds in pages."""

import re


class Browser:
    """One person's browser, over litestar's test client."""

    def __init__(self, call, who):
        self.client, self.who = call.client, who
        self.cookies = {}
        self.sign_in(call.keys[who])

    def request(self, method, path, form=None):
        """What the service says, without following where it leads."""
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        self.client.cookies.clear()
        response = self.client.request(method, path, data=form, headers=headers, follow_redirects=False)
        self.cookies.update(dict(response.cookies))
        self.client.cookies.clear()
        return response

    def get(self, path):
        return self.request("GET", path)

    def token(self, path="/"):
        """What the forms of a page carry."""
        return re.search(r'name="form_token" value="(\w+)"', self.get(path).text)[1]

    def post(self, path, form=None, page="/"):
        """Send a form from a page of ours."""
        return self.request("POST", path, {"form_token": self.token(page), **(form or {})})

    def sign_in(self, key):
        return self.post("/sign-in", {"key": key}, page="/sign-in")
