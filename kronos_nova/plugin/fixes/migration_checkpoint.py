"""Checkpoints of migrations in progress, for a nova-compute that is started after a crash.

A checkpoint is a file with the data that are needed to complete a migration or to roll the
migration back. Nova itself keeps these data only in memory. The files are below
``$state_path/live-migrations``. They are used by
:mod:`kronos_nova.plugin.fixes.interrupted_migrations`.
"""

import os
import pathlib
from collections.abc import Iterable
from typing import Any

from nova import objects
from nova.objects import base as objects_base
from oslo_log import log as logging
from oslo_serialization import jsonutils

from kronos_nova import boundary
from kronos_nova.plugin.nova_types import RequestContext

LOG = logging.getLogger(__name__)

LIVE_FOLDER = 'live-migrations'
COLD_FOLDER = 'cold-migrations'


class MigrationCheckpoints:
    """The checkpoints of the migrations of one kind, stored in files.

    :param state_path: ``state_path`` of nova-compute
    :param host: name of the host; in tests several hosts share the folder
    :param folder: LIVE_FOLDER or COLD_FOLDER
    """

    def __init__(self, state_path: str, host: str, folder: str):
        self._folder = pathlib.Path(state_path, folder)
        self._host = host

    def write(self, instance_uuid: str, **facts: Any) -> None:
        """Write the checkpoint of an instance, and replace an earlier checkpoint of the instance.

        :param facts: the content of the checkpoint: NovaObjects and plain values by name
        """
        serializer = objects_base.NovaObjectSerializer()
        text = jsonutils.dumps({name: serializer.serialize_entity(None, fact)
                                for name, fact in facts.items()})
        self._folder.mkdir(mode=0o700, exist_ok=True)
        partial = self._path(instance_uuid).with_suffix('.new')
        # The file may have the credentials of a volume, as the libvirt definition of the guest has.
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 'w') as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        partial.rename(self._path(instance_uuid))

    def load(self, context: RequestContext, instance_uuid: str) -> dict[str, Any] | None:
        """Return the content of a checkpoint as {name: value}; None if the instance has no
        checkpoint.

        :raises OSError, ValueError: the checkpoint cannot be read
        """
        try:
            text = self._path(instance_uuid).read_text()
        except FileNotFoundError:
            return None
        objects.register_all()
        serializer = objects_base.NovaObjectSerializer()
        return {name: serializer.deserialize_entity(context, fact)
                for name, fact in jsonutils.loads(text).items()}

    def remove(self, instance_uuid: str) -> None:
        """Remove the checkpoint of an instance whose migration has ended. An error is only logged:
        the migration must not fail because of it. The file is replaced by the next migration of the
        instance, or removed when nova-compute starts again."""
        try:
            self._path(instance_uuid).unlink(missing_ok=True)
        except OSError as error:
            LOG.warning('The file that describes the ended migration of instance %s could not be '
                        'removed: %s', instance_uuid, error)

    def remove_all_but(self, instance_uuids: Iterable[str]) -> None:
        """Remove the checkpoints of this host, except those of the instances ``instance_uuids``.
        The migrations of all other instances need no checkpoint any more."""
        kept = {self._path(uuid) for uuid in instance_uuids}
        for path in self._folder.glob(f'{self._host}-{"?" * boundary.UUID_CHARACTERS}.*'):
            if path not in kept:
                path.unlink(missing_ok=True)

    def _path(self, instance_uuid: str) -> pathlib.Path:
        return self._folder / f'{self._host}-{instance_uuid}.json'
