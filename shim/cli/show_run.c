/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cli/show_run.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "shim/cli/verbs.h"
#include "shim/show/overview.h"
#include "shim/show/json.h"
#include "shim/show/report.h"

/* Of a run's report the part about settings: in force, asked for by NCCL, given to communicators. */
static int show_run_json(const struct overview *f, struct error *e)
{
    static const char *const keys[] = {"run", "nccl", "settings", "settings_differ", "rules",
                                       "communicators", "warnings"};
    struct report_options o = {0};
    json_t *whole = report_json(f, &o), *some = json_object();

    for (size_t i = 0; whole && some && i < sizeof(keys) / sizeof(keys[0]); i++)
        if (json_object_get(whole, keys[i]))
            json_object_set(some, keys[i], json_object_get(whole, keys[i]));
    json_decref(whole);
    return json_print(some, stdout, e);
}

int show_run(const char *name, bool json)
{
    struct run_filter filter = RUN_FILTER_ALL;
    struct term t = term_of(stdout);
    struct run *r = NULL;
    struct overview f;
    struct error e;
    int rc = run_open_given(name, &filter, &r, &e);

    if (rc == 0)
        rc = overview_make(r, &f, &e);
    if (rc == 0) {
        if (json)
            rc = show_run_json(&f, &e);
        if (!json) {
            print_settings(&f, &t);
            print_rules(&f, &t);
            print_warnings(&f, &t);
        }
        overview_free(&f);
    }
    run_free(r);
    return rc < 0 ? fail(2, &e) : 0;
}
