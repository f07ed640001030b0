/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/plugin/asked.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "shim/base/digest.h"
#include "shim/preload/shim.h"

#define ASKED_SLOTS 1024u /* NCCL 2.30 knows about 350 variables; a power of two */
#define ASKED_TEXT (64u << 10)
#define VALUE_MOST 1023u /* NCCL's own limit for what its files set */

enum { SLOT_FREE, SLOT_FILLING, SLOT_READY };

static struct asked {
    _Atomic int state;
    const char *text; /* NAME \0 value \0 */
    uint32_t name_bytes, bytes;
    bool present;
    uint32_t comm;
    _Atomic uint32_t noted; /* number of the log that has it */
} slots[ASKED_SLOTS];

static char arena[ASKED_TEXT];
static _Atomic uint32_t arena_used;
static _Atomic uint32_t logs; /* opened so far: a forked child has one of its own */

static bool same(const struct asked *a, const char *name, const char *value, uint32_t comm)
{
    return a->present == (value != NULL) && a->comm == comm && !strcmp(a->text, name) &&
           !strncmp(a->text + a->name_bytes, value ? value : "", VALUE_MOST);
}

static bool fill(struct asked *a, const char *name, const char *value, uint32_t comm)
{
    uint32_t name_bytes = (uint32_t)strlen(name) + 1;
    uint32_t value_bytes = value ? (uint32_t)strnlen(value, VALUE_MOST) : 0;
    uint32_t at = atomic_fetch_add(&arena_used, name_bytes + value_bytes + 1);

    if (at > ASKED_TEXT || name_bytes + value_bytes + 1 > ASKED_TEXT - at)
        return false;
    memcpy(arena + at, name, name_bytes);
    if (value_bytes)
        memcpy(arena + at + name_bytes, value, value_bytes);
    arena[at + name_bytes + value_bytes] = '\0';
    a->text = arena + at;
    a->name_bytes = name_bytes;
    a->bytes = name_bytes + value_bytes + 1;
    a->present = value != NULL;
    a->comm = comm;
    return true;
}

/*
 * The slot of this pair. Two threads that ask for the same at the same moment may both get one:
 * told twice, which does no harm.
 */
static struct asked *slot_of(const char *name, const char *value, uint32_t comm)
{
    uint64_t h = digest_bytes(DIGEST_START, name, strlen(name) + 1);

    h = digest_bytes(h, value ? value : "", value ? strnlen(value, VALUE_MOST) : 0) + comm;
    for (uint32_t n = 0; n < ASKED_SLOTS; n++) {
        struct asked *a = &slots[(h + n) % ASKED_SLOTS];
        int state = atomic_load_explicit(&a->state, memory_order_acquire);
        if (state == SLOT_READY && same(a, name, value, comm))
            return a;
        if (state != SLOT_FREE || !atomic_compare_exchange_strong(&a->state, &state, SLOT_FILLING))
            continue;
        if (!fill(a, name, value, comm))
            return NULL; /* the slot stays FILLING: nobody looks into it */
        atomic_store(&a->state, SLOT_READY);
        return a;
    }
    return NULL;
}

static void write_note(struct log_writer *log, struct asked *a)
{
    uint32_t number = atomic_load(&logs);

    if (atomic_exchange(&a->noted, number) != number)
        log_note(log, NCCLSHIM_NOTE_ASKED, a->comm ? NCCLSHIM_ORIGIN_COMM : 0, a->present, a->comm,
                 NULL, 0, a->text, a->bytes);
}

void asked_note(const char *name, const char *value, uint32_t comm)
{
    struct asked *a = slot_of(name, value, comm);
    struct log_writer *log;

    /* Either the log is seen open here, or its opener sees this slot ready: both are sequential. */
    if (a && (log = shim_log_if_open()) && atomic_load(&logs))
        write_note(log, a);
}

void asked_log_opened(struct log_writer *log)
{
    atomic_fetch_add(&logs, 1);
    for (uint32_t i = 0; i < ASKED_SLOTS; i++)
        if (atomic_load(&slots[i].state) == SLOT_READY)
            write_note(log, &slots[i]);
}
