"""The web page: the files of the page, and the HTTP headers that restrict what a browser does with
the page."""

import hashlib

import falcon

from kronos_nova import page

POLICY = "; ".join((
    "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'",
    "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
    "require-trusted-types-for 'script'", "trusted-types 'none'"))
"""Content-Security-Policy of the page. It permits only files of this server and requests to this
server. It forbids scripts and styles within the page, the interpretation of text as markup, and a
frame around the page."""

LOGINS = b'/*LOGINS*/'
"""Placeholder in the page that is replaced by the permitted ways to log in."""

NOTHING = "default-src 'none'; frame-ancestors 'none'"
"""Content-Security-Policy of all answers except the web page."""

FOR_ALL = {
    'X-Content-Type-Options': 'nosniff',
    'X-Frame-Options': 'DENY',
    'Referrer-Policy': 'no-referrer',
    'Cross-Origin-Resource-Policy': 'same-origin',
}


class Protection:
    """A middleware that adds HTTP headers to responses. The headers make browsers restrict what
    pages and scripts may do."""

    def process_response(self, _request: falcon.Request, response: falcon.Response,
                         _resource: object, _succeeded: bool) -> None:
        for name, value in FOR_ALL.items():
            response.set_header(name, value)
        for name, value in (('Content-Security-Policy', NOTHING), ('Cache-Control', 'no-store')):
            if response.get_header(name) is None:
                response.set_header(name, value)


class File:
    """One file of the page, kept in memory. A browser caches the file, but has to ask before each
    use whether the file has changed. So a page never mixes files of two releases."""

    is_public = True

    def __init__(self, media_type: str, content: bytes):
        self._media_type = media_type
        self._content = content
        self._etag = falcon.ETag(hashlib.sha256(content).hexdigest()[:32])

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        response.set_header('Content-Security-Policy', POLICY)
        response.set_header('Cross-Origin-Opener-Policy', 'same-origin')
        response.cache_control = ['no-cache']
        response.etag = self._etag
        if self._etag in (request.if_none_match or ()):
            response.status = falcon.HTTP_304
            return
        response.content_type, response.data = self._media_type, self._content


def add_routes(application: falcon.App, has_passwords: bool) -> None:
    """Add the routes of the page at ``/ui/``. Addresses in the page are relative, so a proxy may
    serve the page at another path.

    :param has_passwords: true if the page may ask for names and passwords in addition to tokens;
        false if it may ask only for tokens
    """
    text = page.read('live.html').replace(LOGINS, b'password token' if has_passwords else b'token')
    application.add_route('/ui/', File('text/html; charset=utf-8', text))
    for name, (media_type, content) in page.served().items():
        application.add_route(f'/ui/{name}', File(media_type, content))
