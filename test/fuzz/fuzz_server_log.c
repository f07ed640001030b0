/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `doctor --server-log` under libFuzzer: a server's output is anybody's text. No crash, no leak on any
 * bytes, and a sentence for each thing that was found.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "shim/prove/doctor/doctor_server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FILE *in = size ? fmemopen((void *)data, size, "r") : NULL;
    struct doctor_list list = {0};
    struct doctor_server s;

    if (!in)
        return 0;
    doctor_server_read(&s, in);
    fclose(in);
    if (s.count > DOCTOR_SAID_MAX)
        abort();
    doctor_server_tell(&list, &s, "fuzz.log");
    if (list.broken || list.count < s.count)
        abort();
    doctor_list_free(&list);
    return 0;
}
