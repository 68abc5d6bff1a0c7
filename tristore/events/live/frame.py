"""What a live reader is sent: one JSON document, made once and the same for every reader."""

from dataclasses import dataclass

import orjson

from tristore.events.log import Stored


@dataclass(frozen=True, slots=True)
class Frame:
    sequence: int
    type: str
    json: bytes
    kind: str = "event"

    @classmethod
    def of(cls, row: Stored) -> "Frame":
        document = {"kind": "event", "sequence": row.ingress_sequence, "event": row.to_json()}
        return cls(row.ingress_sequence, row.type, orjson.dumps(document))

    @classmethod
    def position(cls, sequence: int) -> "Frame":
        """Tells a reader how far it has come while nothing it wants happened."""
        document = {"kind": "position", "sequence": sequence}
        return cls(sequence, "", orjson.dumps(document), "position")

    def for_websocket(self) -> bytes:
        """A whole text message as it goes over the wire; a server's frames are not masked."""
        size = len(self.json)
        if size < 126:
            return b"\x81" + size.to_bytes(1) + self.json
        if size < 65536:
            return b"\x81\x7e" + size.to_bytes(2) + self.json
        return b"\x81\x7f" + size.to_bytes(8) + self.json

    def for_sse(self) -> bytes:
        # JSON holds no raw line break, so the document is one `data` line.
        return b"id: %d\nevent: %s\ndata: %s\n\n" % (self.sequence, self.kind.encode(), self.json)
