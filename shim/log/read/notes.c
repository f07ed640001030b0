/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/log/read/reader.h"

#include <string.h>

static size_t step_of(const struct ncclshim_note *n)
{
    size_t bytes = n->bytes ? n->bytes : NCCLSHIM_NOTE_ALIGN;

    return (bytes + NCCLSHIM_NOTE_ALIGN - 1) / NCCLSHIM_NOTE_ALIGN * NCCLSHIM_NOTE_ALIGN;
}

/* The lengths were checked when the notes were read (tables.c), so that every step stays inside. */
const struct ncclshim_note *log_note_next(const struct log_file *f,
                                          const struct ncclshim_note *prev)
{
    size_t at = prev ? (size_t)((const uint8_t *)prev - f->notes) + step_of(prev) : 0;

    while (at < f->notes_bytes) {
        const struct ncclshim_note *n = (const struct ncclshim_note *)(f->notes + at);
        if (n->type != 0 && n->type != NCCLSHIM_NOTE_PENDING)
            return n;
        at += step_of(n);
    }
    return NULL;
}

size_t log_note_text(const struct ncclshim_note *n, size_t body_bytes, char *buf, size_t size)
{
    size_t head = sizeof(*n) + body_bytes;
    size_t length = n->bytes > head ? n->bytes - head : 0;

    if (size == 0)
        return 0;
    if (length > size - 1)
        length = size - 1;
    memcpy(buf, (const uint8_t *)n + head, length);
    buf[length] = '\0';
    return length;
}
