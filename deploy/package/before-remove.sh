#!/bin/sh
# Stops the service when the package goes for good (dpkg: `remove`, rpm: 0), and leaves it alone in an upgrade.
set -e
case "$1" in
    remove | 0)
        if [ -d /run/systemd/system ]; then
            systemctl --no-reload disable --now procession.service || true
        fi
        ;;
esac
