/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/show/call_text.h"

#include <stdio.h>
#include <string.h>

#include "shim/base/names.h"
#include "shim/show/term.h"

bool call_facts_of(const struct run *r, uint32_t process, uint32_t site, struct call_facts *f)
{
    const struct run_process *p = &r->processes[process];
    const struct ncclshim_log_header *h = &p->log->head;
    const struct run_member *m;
    char host[65];
    uint32_t member;

    if (site >= p->log->site_count || p->row_of[site] == RUN_NONE)
        return false;
    f->process = p;
    f->site = &p->log->sites[site];
    f->comm = &r->comms[p->comm_of[f->site->comm]];
    member = run_member_of(f->comm, process, f->site->comm);
    if (member == RUN_NONE)
        return false;
    m = &f->comm->members[member];
    f->rank = m->rank;
    f->device = m->entry->device;
    snprintf(host, sizeof(host), "%.*s", (int)sizeof(h->host), h->host);
    safe_text(host, f->host, sizeof(f->host));
    safe_text(f->comm->name, f->comm_name, sizeof(f->comm_name));
    return true;
}

const char *site_algo(const struct ncclshim_site *s)
{
    return s->algo == NCCLSHIM_NO_CHOICE ? "" : algo_name(s->algo);
}

const char *site_proto(const struct ncclshim_site *s)
{
    return s->proto == NCCLSHIM_NO_CHOICE ? "" : proto_name(s->proto);
}

const char *json_quoted(const char *text, char *buf, size_t size)
{
    size_t at = 0;

    buf[at++] = '"';
    for (; *text && at + 4 < size; text++) {
        if (*text == '"' || *text == '\\')
            buf[at++] = '\\';
        buf[at++] = *text;
    }
    buf[at++] = '"';
    buf[at] = '\0';
    return buf;
}

const char *csv_field(const char *text, char *buf, size_t size)
{
    bool formula = strchr("=+-@", text[0]) && text[0];
    size_t at = 0;

    if (!formula && !strpbrk(text, ",\"\r\n")) {
        snprintf(buf, size, "%s", text);
        return buf;
    }
    buf[at++] = '"';
    if (formula)
        buf[at++] = '\'';
    for (; *text && at + 4 < size; text++) {
        if (*text == '"')
            buf[at++] = '"';
        buf[at++] = *text;
    }
    buf[at++] = '"';
    buf[at] = '\0';
    return buf;
}
