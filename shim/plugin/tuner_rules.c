/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "shim/plugin/tuner.h"
#include "shim/preload/shim.h"

#define RULES_COUNTED 256 /* further rules are applied, not counted */

static _Atomic(struct ncclshim_rule *) counters[RULES_COUNTED]; /* in the log; NULL = none */
static _Atomic unsigned char told[RULES_COUNTED];               /* bit per enum rule_event */

static size_t number_of(const struct tune_rule *r)
{
    return (size_t)(r - shim.profile->tune);
}

void tuner_rules_log_opened(struct log_writer *log)
{
    const struct profile *p = shim.profile;
    static const struct ncclshim_rule zero;

    for (size_t i = 0; p && i < p->tune_count && i < RULES_COUNTED; i++) {
        const char *text = p->tune[i].text;
        atomic_store(&told[i], 0);
        atomic_store(&counters[i], log_note(log, NCCLSHIM_NOTE_RULE, (uint32_t)i, 0, 0, &zero,
                                            sizeof(zero), text, strlen(text) + 1));
    }
}

static uint64_t *counter(struct ncclshim_rule *c, enum rule_event event)
{
    return event == RULE_MATCHED ? &c->matched : event == RULE_MASKED ? &c->masked : &c->capped;
}

void tuner_rule_count(const struct tune_rule *r, enum rule_event event, const char *fmt, ...)
{
    size_t n = number_of(r);
    struct ncclshim_rule *c = n < RULES_COUNTED ? atomic_load(&counters[n]) : NULL;
    struct log_writer *log = shim_log_if_open();
    char text[256];
    va_list ap;

    if (!c || !log)
        return;
    atomic_fetch_add_explicit((_Atomic uint64_t *)counter(c, event), 1, memory_order_relaxed);
    if (!fmt || atomic_fetch_or(&told[n], 1u << event) & 1u << event)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    log_warn(log, -1, "%s:%d: the rule `%s` %s", r->place.file ? r->place.file : "profile",
             r->place.line, r->text, text);
}
