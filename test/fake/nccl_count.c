/* SPDX-License-Identifier: Apache-2.0 */
/* How often each public function was entered; NCCLSHIM_FAKE_NCCL_COUNTS names the file. */
#include "test/fake/nccl_fake.h"

#include <stdio.h>
#include <stdlib.h>

static _Atomic(struct fake_counter *) head;

void fake_count_add(struct fake_counter *c)
{
    if (atomic_fetch_add_explicit(&c->count, 1, memory_order_relaxed))
        return;
    struct fake_counter *first = atomic_load(&head);
    do
        c->next = first;
    while (!atomic_compare_exchange_weak(&head, &first, c));
}

__attribute__((destructor)) static void write_counts(void)
{
    const char *path = getenv("NCCLSHIM_FAKE_NCCL_COUNTS");
    FILE *f = path && *path ? fopen(path, "a") : NULL;
    if (!f)
        return;
    for (struct fake_counter *c = atomic_load(&head); c; c = c->next)
        fprintf(f, "%s %lu\n", c->name, atomic_load(&c->count));
    fclose(f);
}
