/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "shim/plugin/tuner.h"
#include "shim/profile/choice.h"

/* NCCL 2.21 reads both the same way but for prefixes, which it does not know and refuses. */
static bool leaves(const char *variable, bool proto, int op, int number)
{
    const char *value = getenv(variable);
    struct choice pinned;
    char why[128];

    if (!value || !*value)
        return true;
    if (choice_parse(value, proto, &pinned, why, sizeof(why)))
        return false;
    return pinned.on[choice_index(op)] >> number & 1;
}

bool tuner_pins_leave(int op, int algo, int proto)
{
    return leaves("NCCL_ALGO", false, op, algo) && leaves("NCCL_PROTO", true, op, proto);
}
