/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/show/html.h"
int report_html(const struct findings *f, const struct report_options *o, FILE *out)
{
    (void)f; (void)o; (void)out;
    return -1;
}
