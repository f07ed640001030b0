/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/show/compare_show.h"
int compare_html(const struct compare *c, const struct setting_changes *s, FILE *out)
{
    (void)c; (void)s; (void)out;
    return -1;
}
