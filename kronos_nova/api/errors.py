"""Errors of operations over HTTP. Each kind of error has a status, and all errors have the same
form of body."""

import http
import json
from collections.abc import Mapping

import falcon
import msgspec
from oslo_db import exception as db_exc
from oslo_log import log as logging

from kronos_nova import boundary
from kronos_nova import exception
from kronos_nova.api import protocol
from kronos_nova.services import dispatch

LOG = logging.getLogger(__name__)

STATUSES = (
    (exception.MoveEnded, 409),
    (exception.PlanNotWaiting, 409),
    (exception.PlanPending, 409),
    (exception.DrainPending, 409),
    (exception.DrainRefused, 409),
    (exception.HostDown, 409),
    (exception.HostInService, 409),
    (exception.ServerAmbiguous, 409),
    (exception.ServerNotFound, 404),
    (exception.MoveNotFound, 404),
    (exception.PlanNotFound, 404),
    (exception.DrainNotFound, 404),
    (exception.HoldNotFound, 404),
    (exception.HoldNotWaiting, 409),
    (exception.MaintenanceNotFound, 404),
    (exception.QuarantineNotFound, 404),
    (exception.NotInScope, 404),
    (exception.HostNotFound, 404),
    (exception.RequestRefused, 400),
    (exception.SnapshotNotFound, 404),
    (exception.ReplayTooLarge, 422),
    (exception.ReplayBusy, 429),
    (exception.TooManyListeners, 429),
    (msgspec.MsgspecError, 400),
    (boundary.OutOfBounds, 400),
    (db_exc.DBError, 503),
    *((kind, 503) for kind in dispatch.UNANSWERED),
)
"""Pairs (kind of error, HTTP status). An error gets the status of the first kind that matches. An
error that no kind matches is a fault of Kronos, and gets the status 500."""

LONGEST_ERROR = 1000
"""Maximum number of characters of an outage's error in the log. A longer error is cut. Raised, one
error can fill a screen; lowered, the cause may be cut off. Not measured."""

UNANSWERED = {500: 'Something went wrong; the log of kronos-api says what.',
              503: 'Something that Kronos needs does not answer; the log of kronos-api says what.'}


def status_of(error: Exception) -> int:
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def translate(request: falcon.Request, _response: falcon.Response, error: Exception,
              _params: Mapping[str, str]) -> None:
    """Translate any error of an operation into an HTTP error."""
    status, asked = status_of(error), {
        'method': request.method, 'path': boundary.shown(protocol.with_slashes(request.path))}
    # Errors of databases and of Nova may contain addresses and statements.
    if status == 500:
        LOG.exception('The request %(method)s %(path)s failed because of an error of kronos-api',
                      asked)
    elif status > 500:
        LOG.error('The request %(method)s %(path)s failed, because something that Kronos needs '
                  'does not answer: %(error)s',
                  {**asked, 'error': boundary.shown(str(error), LONGEST_ERROR)})
    raise falcon.HTTPError(
        falcon.code_to_http_status(status), code=getattr(error, 'code', None),
        description=UNANSWERED.get(status) or str(error)) from error


def serialize(request: falcon.Request, response: falcon.Response,
              error: falcon.HTTPError) -> None:
    """Write an error in the form that the API working group of OpenStack recommends."""
    status = int(str(error.status).partition(' ')[0])
    response.content_type = falcon.MEDIA_JSON
    response.data = json.dumps({'errors': [{
        'status': status, 'title': http.HTTPStatus(status).phrase,
        'code': error.code or f'kronos.http_{status}', 'detail': error.description or '',
        'request_id': request.env.get('openstack.request_id', '')}]}).encode()
