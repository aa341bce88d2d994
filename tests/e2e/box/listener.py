"""A program that listens to notifications."""

import collections

import oslo_messaging as messaging


class Listener:
    """Keeps all that it hears on a topic.

    :param transport: of oslo.messaging, for notifications
    """

    def __init__(self, transport, topic):
        self.heard = []     # (event type, data of the payload, metadata)
        self._server = messaging.get_notification_listener(
            transport, [messaging.Target(topic=topic)], [self], executor='threading')
        self._server.start()

    def info(self, _context, _publisher, event_type, payload, metadata):
        self.heard.append((event_type, payload['kronos_object.data'], metadata))

    error = info

    def stop(self):
        self._server.stop()
        self._server.wait()

    @property
    def data(self):
        """{sequence: (event type, data of the payload)}, each once."""
        return {data['sequence']: (event_type, data)
                for event_type, data, _meta in list(self.heard)}

    @property
    def copies(self):
        """Counter of {sequence: how often it was heard}."""
        return collections.Counter(data['sequence'] for _type, data, _meta in list(self.heard))
