"""Mail servers for tests: prints their ports as one line of JSON, writes what they take to a file, and
ends when its standard input does.

What a recipient's name begins with says what becomes of a mail: `r451@…` is answered with 451, `hang@…`
with nothing, and `dropdot@…` is taken and the connection cut before the answer.
"""

import argparse
import asyncio
import base64
import email
import email.policy
import json
import logging
import ssl
import sys
import warnings

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

USER, PASSWORD, TOKEN = b"batch", b"geheim", "t0ken"


def authenticate(server, session, envelope, mechanism, data):
    good = isinstance(data, LoginPassword) and (data.login, data.password) == (USER, PASSWORD)
    session.mechanism = mechanism
    # handled=True would mean that the answer has been given, and the client would wait for ever.
    return AuthResult(success=good, handled=False)


class Taker:
    def __init__(self, path):
        self.path = path

    async def auth_XOAUTH2(self, server, args):
        said = base64.b64decode(args[1]).decode()
        server.session.mechanism = "XOAUTH2"
        if said == f"user={USER.decode()}\x01auth=Bearer {TOKEN}\x01\x01":
            return AuthResult(success=True)
        # So do the large providers: the reason as a question, and a failure after an empty answer.
        await server.challenge_auth('{"status":"401"}')
        return AuthResult(success=False, handled=False)

    async def handle_MAIL(self, server, session, envelope, address, options):
        if address.startswith("notmine@"):
            return "553 Mail from must equal authorized user"
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(self, server, session, envelope, address, options):
        name = address.split("@")[0]
        if name == "hang":
            await asyncio.Event().wait()
        if name[0] == "r" and name[1:].isdigit():
            return f"{name[1:]} answered as {name} asked"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        self.keep(server, session, envelope)
        if envelope.rcpt_tos[0].startswith("dropdot@"):
            server.transport.abort()
        return "250 taken"

    def keep(self, server, session, envelope):
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        kept = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "hello": session.host_name,
            "tls": server.transport.get_extra_info("ssl_object") is not None,
            "mechanism": getattr(session, "mechanism", None),
            "peer": session.peer[1],
            "headers": [[name, str(value)] for name, value in mail.items()],
            "parts": {part.get_content_type(): part.get_content() for part in mail.iter_parts()},
            "faults": [str(fault) for part in mail.walk() for fault in part.defects],
        }
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(kept) + "\n")


async def refuse(reader, writer):
    writer.write(b"554 no service for you\r\n")
    await reader.read()
    writer.close()


async def main():
    parser = argparse.ArgumentParser()
    for name in ("--cert", "--key", "--mails"):
        parser.add_argument(name, required=True)
    args = parser.parse_args()
    # Clients that go away are part of the tests, and aiosmtpd tells of each.
    logging.disable()
    warnings.simplefilter("ignore")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(args.cert, args.key)
    taker = Taker(args.mails)
    loop = asyncio.get_running_loop()
    login = {"authenticator": authenticate, "auth_required": True}

    def smtp(**more):
        return lambda: SMTP(taker, hostname="mail.test", loop=loop, **more)

    servers = {
        "starttls": await loop.create_server(
            smtp(tls_context=context, require_starttls=True, **login), "127.0.0.1", 0
        ),
        "tls": await loop.create_server(
            smtp(auth_require_tls=False, **login), "127.0.0.1", 0, ssl=context
        ),
        "plain": await loop.create_server(smtp(), "127.0.0.1", 0),
        "refusing": await asyncio.start_server(refuse, "127.0.0.1", 0),
    }
    ports = {name: server.sockets[0].getsockname()[1] for name, server in servers.items()}
    print(json.dumps(ports), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


asyncio.run(main())
