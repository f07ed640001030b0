/* SPDX-License-Identifier: Apache-2.0 */
#include <getopt.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "shim/cli/options.h"
#include "shim/cli/verbs.h"
#include "shim/profile/profile.h"
#include "shim/show/json.h"

static const char help[] =
    "usage: ncclshim profiles [--json]\n"
    "\n"
    "List the profiles that a name can mean, each with its description and where it lies, in the\n"
    "order in which names are looked up:\n"
    "  NCCLSHIM_PROFILE_PATH (colon list), $XDG_CONFIG_HOME/ncclshim/profiles (or ~/.config/...),\n"
    "  /etc/ncclshim/profiles, the installed share folder, profiles/ beside the command or the\n"
    "  shared object, profiles/ beside the build\n"
    "\n"
    "exit code: 0 good, 1 one of them can't be loaded\n";

/* One line: "fewer-channels   Folk recipe: ...   profiles/fewer-channels.ini". */
static void print_entry(const struct profile_entry *entry, const struct profile *p,
                        const char *wrong)
{
    printf("%-18s %s\n%-18s   %s%s\n", entry->name, p ? p->description : wrong, "", entry->path,
           entry->shadowed ? "  (shadowed: a folder earlier in the path has this name)" : "");
}

static json_t *entry_json(const struct profile_entry *entry, const struct profile *p,
                          const char *wrong)
{
    json_t *o = json_object();

    json_object_set_new(o, "name", json_string(entry->name));
    json_object_set_new(o, "path", json_string(entry->path));
    json_object_set_new(o, "shadowed", json_boolean(entry->shadowed));
    json_object_set_new(o, "good", json_boolean(p));
    if (p)
        json_object_set_new(o, "description", json_string(p->description));
    else
        json_object_set_new(o, "error", json_string(wrong));
    return o;
}

static int list_all(json_t *json)
{
    struct profile_entry *list;
    size_t count;
    int rc = 0;

    if (profile_list(&list, &count)) {
        struct error e;
        error_set(&e, "", 0, "out of memory");
        return fail(2, &e);
    }
    for (size_t i = 0; i < count; i++) {
        struct profile *p;
        struct error e;
        char wrong[sizeof(e.file) + sizeof(e.text) + 32] = "";
        if (profile_load(list[i].path, &p, &e)) {
            rc = 1;
            error_str(&e, wrong, sizeof(wrong));
        }
        if (json)
            json_array_append_new(json, entry_json(&list[i], p, wrong));
        else
            print_entry(&list[i], p, wrong);
        profile_free(p);
    }
    profile_list_free(list, count);
    return rc;
}

struct request {
    bool json;
};

static const struct option_row rows[] = {
    {"json", .kind = OPTION_FLAG, .at = offsetof(struct request, json)},
    {.name = NULL},
};

int verb_profiles(int argc, char **argv)
{
    struct request q = {0};
    struct error e;
    json_t *json;
    int rc = options_read(argc, argv, &(struct options){help, rows, false}, &q, NULL);

    if (rc >= 0)
        return rc;
    if (optind != argc)
        return usage(help, 0);
    json = q.json ? json_array() : NULL;
    if (!json)
        printf("%-18s %s\n", "none", "Log only: no setting is touched (built in)");
    rc = list_all(json);
    if (json && json_print(json, stdout, &e) < 0)
        return fail(2, &e);
    return rc;
}
