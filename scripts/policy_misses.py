#!/usr/bin/env python3
"""Makes crates/model/cache/src/policy/libcachesim.txt: misses that libCacheSim counts on the stream of the tests of policies.

    python3 -m venv VENV && VENV/bin/pip install libcachesim==0.3.5
    VENV/bin/python scripts/policy_misses.py > crates/model/cache/src/policy/libcachesim.txt
    VENV/bin/python scripts/policy_misses.py near > crates/model/cache/src/policy/libcachesim_near.txt

Takes some minutes. The tests read the tables and do not need libCacheSim. The second one has policies that are defined otherwise
than here, and by how much the counts differ is stated there.
"""

import sys

import libcachesim

MASK = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15
REQUESTS, OBJECTS, SEED = 20_000, 3000, 7
NEVER = (1 << 63) - 1
# Defined as here; and otherwise, with their names here.
POLICIES = ["FIFO", "LRU", "Clock", "Sieve", "LFU", "GDSF", "Belady"]
NEAR = {"TwoQ": "2q", "ARC": "arc", "WTinyLFU": "w-tinylfu", "S3FIFO": "s3-fifo", "SLRU": "slru"}
# Capacities, in thousandths of the bytes of all objects.
SHARES = (5, 10, 20, 50, 100, 200, 400, 800)


def mix(word):
    """SplitMix64's first number for a seed, as crate `random` has it."""
    z = (word + STEP) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def trace():
    objects, state = [], SEED
    for _ in range(REQUESTS):
        x = mix(state) >> 48
        state = (state + STEP) & MASK
        objects.append((x * x * x * OBJECTS) >> 48)
    return objects


def next_requests(objects):
    following, last = [0] * len(objects), {}
    for number in range(len(objects) - 1, -1, -1):
        following[number] = last.get(objects[number], NEVER)
        last[objects[number]] = number
    return following


def misses(policy, capacity, objects, following, size):
    cache, missed = getattr(libcachesim, policy)(cache_size=capacity), 0
    for number, item in enumerate(objects):
        request = libcachesim.Request()
        request.obj_id, request.obj_size = item, size(item)
        request.clock_time, request.next_access_vtime = number, following[number]
        missed += not cache.get(request)
    return missed


def main():
    is_near = sys.argv[1:] == ["near"]
    names = NEAR if is_near else {policy: policy.lower() for policy in POLICIES}
    print("# policy, sizes of objects, capacity:misses; libCacheSim 0.3.5, made by scripts/policy_misses.py")
    objects = trace()
    following = next_requests(objects)
    for name, size in (("unit", lambda _: 1), ("bytes", lambda item: 100 + mix(item) % 9901)):
        total = sum(size(item) for item in set(objects))
        for policy, shown in names.items():
            capacities = [total * share // 1000 for share in SHARES]
            counted = (f"{c}:{misses(policy, c, objects, following, size)}" for c in capacities)
            print(shown, name, *counted)


if __name__ == "__main__":
    main()
