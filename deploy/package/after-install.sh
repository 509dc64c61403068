#!/bin/sh
# Tells systemd of the unit. Nothing is enabled, started or restarted: what runs goes on with the old program until
# `systemctl restart procession`, which waits for jobs that may not start twice (docs/operating.md).
set -e
if [ -d /run/systemd/system ]; then
    systemctl --system daemon-reload || true
fi
