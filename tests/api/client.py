"""A client generated from the API's description: lists batches, acts on one, and follows a log.

scripts/test-api.sh generates the package `procession_client` from a running server: client.py ADDRESS TOKEN
"""

import sys
import time

from procession_client import AuthenticatedClient
from procession_client.api.batch_jobs import list_log_lines
from procession_client.api.batches import act_on_jobs, get_batch, list_batches
from procession_client.models import BatchActionRequest, BatchDetail, LogLinesPage, Problem

address, token = sys.argv[1:]
client = AuthenticatedClient(base_url=address, token=token)

page = list_batches.sync(client=client, group="month_end", limit=10)
batch = next(one for one in page.items if one.batch_no == "202406")
assert batch.status == "FAILED", batch

wish = BatchActionRequest(action="rerun", jobs=["POST"])
preview = act_on_jobs.sync(batch.group, batch.batch_no, client=client, body=wish)
wish.seen, wish.reason = preview.seen, "a generated client reruns it"
done = act_on_jobs.sync(batch.group, batch.batch_no, client=client, body=wish)
assert done.written, done

lines, after = [], None
for _ in range(200):
    found = list_log_lines.sync(batch.group, batch.batch_no, "POST", client=client, limit=100,
                                **({"after": after} if after else {}))
    assert isinstance(found, LogLinesPage), found
    lines += [f"{line.attempt}: {line.text}" for line in found.items]
    after = found.last or after
    if found.is_over and found.attempt == 2:
        break
    time.sleep(0.1)
assert "2: posting" in lines, lines

assert isinstance(get_batch.sync(batch.group, batch.batch_no, client=client), BatchDetail)
refused = get_batch.sync(batch.group, "209912", client=client)
assert isinstance(refused, Problem) and refused.status == 404, refused
print(f"openapi-python-client: {len(page.items)} batches, {len(lines)} lines", file=sys.stderr)
