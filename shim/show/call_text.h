/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is the same for all runs of one call site, written once and used for each record: the texts
 * of the streaming exports.
 */
#ifndef NCCLSHIM_SHOW_CALL_TEXT_H
#define NCCLSHIM_SHOW_CALL_TEXT_H

#include "shim/stats/run.h"

/* All that an export says about a site, as texts fit for their place. */
struct call_facts {
    const struct run_process *process;
    const struct run_comm *comm;
    const struct ncclshim_site *site;
    int32_t rank, device;
    char host[400], comm_name[480]; /* harmless, not yet quoted */
};

/* false when a site belongs to no communicator, or is filtered out. */
bool call_facts_of(const struct run *r, uint32_t process, uint32_t site, struct call_facts *f);
const char *site_algo(const struct ncclshim_site *s);
const char *site_proto(const struct ncclshim_site *s);

/* "text" with what JSON wants escaped (the text must be harmless already). Returns buf. */
const char *json_quoted(const char *text, char *buf, size_t size);
/* A CSV field, quoted when it must be; one that a spreadsheet would take for a formula gets a '. */
const char *csv_field(const char *text, char *buf, size_t size);

#endif
