/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/profile/config_fields.h"

const struct config_field_facts config_fields[CONFIG_FIELD_COUNT] = {
#define FIELD_INT false
#define FIELD_STR true
#define X(sym, key, offset, since, kind, least, most, variable)                                    \
    {key, offset, since, FIELD_##kind, least, most, variable},
    NCCLSHIM_CONFIG_FIELDS(X)
#undef X
};
