/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench's workload files under libFuzzer: no crash, no leak on any bytes; what is accepted reads back
 * from what is written to the same workload; what is refused is refused with a word.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/prove/bench/workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(const struct workload *w)
{
    struct workload again;
    struct error e = {"", 0, ""};
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out || workload_write(w, out) || fclose(out))
        abort();
    if (workload_parse(&again, text, "again", &e)) {
        fprintf(stderr, "what was written is refused: line %d: %s\n%s\n", e.line, e.text, text);
        abort();
    }
    if (workload_digest(w) != workload_digest(&again)) {
        fprintf(stderr, "what was written reads as another workload\n%s\n", text);
        abort();
    }
    workload_free(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct workload w;
    struct error e = {"", 0, ""};

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    if (workload_parse(&w, text, "fuzz", &e) == 0) {
        workload_check(&w, 8, &e);
        round_trip(&w);
        workload_free(&w);
    } else if (!e.text[0]) {
        abort();
    }
    free(text);
    return 0;
}
