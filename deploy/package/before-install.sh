#!/bin/sh
# Makes the user that the service runs as. dpkg calls this with `install` or `upgrade`, rpm with a number.
set -e
if ! getent group procession >/dev/null; then
    groupadd --system procession
fi
if ! getent passwd procession >/dev/null; then
    useradd --system --gid procession --home-dir /var/lib/procession --no-create-home \
        --shell /usr/sbin/nologin --comment "Procession" procession
fi
