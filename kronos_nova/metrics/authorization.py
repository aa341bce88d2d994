"""Credentials of requests to a Prometheus API."""

import re

import requests
from requests import auth

from kronos_nova import exception
from kronos_nova.metrics.endpoint import Endpoint


class Authorization(auth.AuthBase):
    """An authentication of the requests library that adds the credentials to every request. The
    authentication is used even without credentials, because the requests library would otherwise
    read the .netrc of the service's user."""

    def __init__(self, endpoint: Endpoint):
        self.endpoint = endpoint

    def renew(self) -> bool:
        """Drop a refused token. Return true if keystone can issue a new token; false if the
        credentials are not keystone's."""
        if self.endpoint.keystone is None:
            return False
        self.endpoint.keystone.renew()
        return True

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        endpoint = self.endpoint
        if endpoint.keystone is not None:
            request.headers['X-Auth-Token'] = endpoint.keystone.token()
            return request
        if endpoint.username is not None:
            return auth.HTTPBasicAuth(endpoint.username.encode(),
                                      (endpoint.password or '').encode())(request)
        token = endpoint.bearer_token
        if endpoint.bearer_token_file:
            token = _read_token(endpoint.bearer_token_file)
        if token is not None:
            request.headers['Authorization'] = f'Bearer {token}'
        return request


def _read_token(path: str) -> str:
    try:
        with open(path, encoding='ascii') as file:
            token = file.read().strip()
    except (OSError, ValueError) as error:
        raise exception.MetricsMisconfigured(
            option='bearer_token_file', problem=f'{path} cannot be read: {error}') from error
    if not re.fullmatch(r'[\x21-\x7e]+', token):
        raise exception.MetricsMisconfigured(
            option='bearer_token_file',
            problem=f'the file {path} must contain a token: one line of printable ASCII characters '
                    'without spaces')
    return token
