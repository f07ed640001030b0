/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/cli/vars_table.h"

#include "shim/profile/nccl_vars.h"
#include "shim/profile/version.h"

/* Text of one cell: a bar would end it. */
static void cell(const char *text, FILE *out)
{
    fputs(" ", out);
    for (; *text; text++)
        fputs(*text == '|' ? "\\|" : (char[]){*text, '\0'}, out);
    fputs(" |", out);
}

static const char *bad_value(const struct nccl_var *v)
{
    if (*v->note)
        return v->note;
    if (v->type == VAR_BOOL || v->type == VAR_INT)
        return "digits up to the first other letter; a word is 0";
    if (v->type == VAR_BYTES)
        return "digits up to the first other letter: 8M is 8; a word is 0";
    return v->type == VAR_WORD ? "unknown words ignored" : "";
}

/* Known only from the strings of a newer library. */
static const char *when(const struct nccl_var *v)
{
    return v->type == VAR_ANY ? "not known" : nccl_var_when_text(v);
}

static void versions(const struct nccl_var *v, FILE *out)
{
    char first[VERSION_TEXT_MAX], last[VERSION_TEXT_MAX];

    version_text(v->first, first, sizeof(first));
    version_text(v->last, last, sizeof(last));
    if (v->first && v->last)
        fprintf(out, " %s to %s |", first, last);
    else if (v->first || v->last)
        fprintf(out, v->first ? " from %s |" : " up to %s |", v->first ? first : last);
    else
        fputs(" all |", out);
}

void vars_table_write(FILE *out)
{
    const struct nccl_var *v;
    char range[160];

    fputs("| variable | values | default | read | NCCL | what NCCL makes of other values |\n"
          "|---|---|---|---|---|---|\n",
          out);
    for (size_t i = 0; (v = nccl_var_at(i)); i++) {
        fprintf(out, "| `%s` |", v->name);
        cell(nccl_var_range_text(v, range, sizeof(range)), out);
        cell(v->standard, out);
        cell(when(v), out);
        versions(v, out);
        cell(bad_value(v), out);
        fputc('\n', out);
    }
}
