/* SPDX-License-Identifier: Apache-2.0 */
/* One PTX instruction: from text to what the machine runs, or the reason why it is refused. */
#include "test/fake/ptx_decode.h"

#include <stdlib.h>
#include <string.h>

static struct type type_of(const char *text)
{
    struct type type = {0, text[0]};
    if (strcmp(text, "pred") == 0) {
        return (struct type){1, 'p'};
    }
    if (text[0] != '\0' && strchr("busf", text[0]) != NULL && text[1] >= '1' && text[1] <= '8') {
        int bits = atoi(text + 1);
        type.bytes = bits == 8 || bits == 16 || bits == 32 || bits == 64 ? bits / 8 : 0;
    }
    return type;
}

static bool is_one_of(const char *text, const char *list)
{
    size_t length = strlen(text);
    for (const char *at = list; (at = strstr(at, text)) != NULL; at += length) {
        if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

static const char *read_parts(const struct ptx_text *text, struct parts *out)
{
    for (int i = 1; i < text->nparts; i++) {
        const char *part = text->parts[i];
        struct type type = type_of(part);
        if (type.bytes != 0) {
            if (out->ntypes == 2) {
                return UNKNOWN;
            }
            out->types[out->ntypes++] = type;
        } else if (strcmp(part, "v2") == 0 || strcmp(part, "v4") == 0) {
            out->vector = part[1] - '0';
        } else if (strcmp(part, "volatile") == 0) {
            out->volatile_ = true;
        } else if (is_one_of(part, "relaxed acquire release acq_rel")) {
            out->ordered = true;
        } else if (is_one_of(part, "cta gpu sys cluster")) {
            out->scope = true;
        } else if (strcmp(part, "global") == 0) {
            out->global = true;
        } else if (strcmp(part, "param") == 0) {
            out->param = true;
        } else if (is_one_of(part, "shared local const")) {
            return "state space not known to the simulator";
        } else if (!is_one_of(part, "weak ca cg cs lu cv wb wt nc uni rn ftz sat") &&
                   strncmp(part, "L1::", 4) != 0 && strncmp(part, "L2::", 4) != 0) {
            if (out->noperations++ == 0) {
                strcpy(out->operation, part);
            }
        }
    }
    return NULL;
}

#define CHECK(expression)                        \
    do {                                         \
        const char *check_reason = (expression); \
        if (check_reason != NULL) {              \
            return check_reason;                 \
        }                                        \
    } while (0)

static const char *needs(const struct ptx_scope *scope, int target, int version)
{
    if (scope->target < target) {
        return "instruction or modifier requires a higher .target";
    }
    return scope->version < version ? "instruction or modifier requires a higher .version" : NULL;
}

static const char *count(const struct ptx_text *text, int n)
{
    return text->noperands == n ? NULL : MISMATCH;
}

/* ---- families ---- */

static const char *memory_rules(const struct ptx_scope *scope, const struct parts *parts)
{
    if (parts->ordered) {
        CHECK(needs(scope, 70, 60));
        if (!parts->scope || parts->volatile_) {
            return "ordered access needs a scope and no .volatile";
        }
    }
    return NULL;
}

/* What loads and conversions write fills the register, which may be wider than the type. */
static const char *mask_of_register(const struct ptx_scope *scope, struct ptx_insn *out)
{
    out->mask = ptx_mask(ptx_register_bytes(scope, out->d[0]));
    return NULL;
}

static const char *load_store(struct ptx_scope *scope, const struct ptx_text *text,
                              struct parts *parts, struct ptx_insn *out)
{
    bool store = strcmp(text->parts[0], "st") == 0;
    if (parts->ntypes != 1 || parts->noperations != 0 || (store && parts->param)) {
        return UNKNOWN;
    }
    CHECK(count(text, 2));
    CHECK(memory_rules(scope, parts));
    if (parts->scope && !parts->ordered) {
        return UNKNOWN;
    }
    struct type type = parts->types[0];
    out->bytes = (uint8_t)type.bytes;
    out->is_signed = type.kind == 's';
    out->n = (uint8_t)(parts->vector ? parts->vector : 1);
    if (out->bytes * out->n > 16) {
        return "vector of more than 16 bytes";
    }
    out->op = store ? I_ST : parts->param ? I_LD_PARAM : I_LD;
    if (store && out->n == 2 && out->bytes == 8) {
        out->op = I_ST_16;
    }
    CHECK(ptx_address(scope, text->operands[store ? 0 : 1], parts->param, out));
    CHECK(ptx_vector(scope, text->operands[store ? 1 : 0], type, !store, out->n, out->d));
    return store ? NULL : mask_of_register(scope, out);
}

static const char *atomic(struct ptx_scope *scope, const struct ptx_text *text,
                          const struct parts *parts, struct ptx_insn *out)
{
    static const struct {
        const char *name;
        enum ptx_op op;
    } operations[] = {{"add", I_ADD_MEM}, {"exch", I_EXCH_MEM}, {"cas", I_CAS_MEM},
                      {"max", I_MAX_MEM}, {"min", I_MIN_MEM},   {"and", I_AND_MEM},
                      {"or", I_OR_MEM},   {"xor", I_XOR_MEM}};
    bool red = strcmp(text->parts[0], "red") == 0;
    if (parts->ntypes != 1 || parts->noperations != 1 || parts->volatile_ || parts->param) {
        return UNKNOWN;
    }
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
        if (strcmp(operations[i].name, parts->operation) == 0) {
            out->op = (uint8_t)operations[i].op;
        }
    }
    bool cas = out->op == I_CAS_MEM;
    struct type type = parts->types[0];
    if (out->op == I_NOTHING || type.bytes < 4 || type.kind == 'f' ||
        (red && (cas || out->op == I_EXCH_MEM))) {
        return UNKNOWN;
    }
    if ((cas || out->op == I_EXCH_MEM) != (type.kind == 'b') && out->op < I_AND_MEM) {
        return "type not allowed for this atomic operation";
    }
    /* There is no atom.add.s64. */
    if (out->op == I_ADD_MEM && type.kind == 's' && type.bytes == 8) {
        return "type not allowed for this atomic operation";
    }
    CHECK(count(text, 2 + !red + cas));
    if (parts->ordered) {
        CHECK(needs(scope, 70, 60));
    }
    if (parts->scope) {
        CHECK(needs(scope, 60, 50));
    }
    out->bytes = (uint8_t)type.bytes;
    out->is_signed = type.kind == 's';
    out->mask = ptx_mask(type.bytes);
    out->n = 1;
    out->d[0] = -1;
    if (!red) {
        CHECK(ptx_destination(scope, text->operands[0], type, false, &out->d[0]));
    }
    CHECK(ptx_address(scope, text->operands[!red], false, out));
    CHECK(ptx_source(scope, text->operands[1 + !red], type, false, &out->s[1]));
    return cas ? ptx_source(scope, text->operands[3], type, false, &out->s[2]) : NULL;
}

static int special(const char *name)
{
    static const char *const names[] = {"%tid.x",   "%tid.y",    "%tid.z",    "%ntid.x",
                                        "%ntid.y",  "%ntid.z",   "%ctaid.x",  "%ctaid.y",
                                        "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z",
                                        "%laneid",  "%warpid",   "%smid"};
    for (int i = 0; i < (int)(sizeof names / sizeof names[0]); i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

static const char *move(struct ptx_scope *scope, const struct ptx_text *text,
                        const struct parts *parts, struct ptx_insn *out)
{
    CHECK(count(text, 2));
    if (parts->ntypes != 1 || parts->noperations != 0) {
        return UNKNOWN;
    }
    struct type type = parts->types[0];
    const char *to = text->operands[0], *from = text->operands[1];
    struct type part = {type.bytes / 2, 'b'};
    out->mask = ptx_mask(type.bytes);
    if (from[0] == '{' || to[0] == '{') {
        if (type.kind != 'b' || type.bytes < 4) {
            return MISMATCH;
        }
        out->op = from[0] == '{' ? I_PACK : I_UNPACK;
        out->bytes = (uint8_t)part.bytes;
        out->n = 2;
        if (out->op == I_PACK) {
            CHECK(ptx_destination(scope, to, type, false, &out->d[0]));
            return ptx_vector(scope, from, part, false, 2, out->s);
        }
        CHECK(ptx_source(scope, from, type, false, &out->s[0]));
        return ptx_vector(scope, to, part, true, 2, out->d);
    }
    CHECK(ptx_destination(scope, to, type, false, &out->d[0]));
    bool timer = strncmp(from, "%globaltimer", 12) == 0;
    if (timer || strncmp(from, "%clock", 6) == 0) {
        bool high = strstr(from, "_hi") != NULL;
        bool whole = !high && (timer ? from[12] == '\0' : strcmp(from, "%clock64") == 0);
        out->op = timer ? I_TIMER : I_CLOCK;
        out->offset = high ? 32 : 0;
        return type.bytes == (whole ? 8 : 4) ? NULL : MISMATCH;
    }
    out->offset = special(from);
    if (out->offset >= 0) {
        out->op = I_SPECIAL;
        return type.bytes == 4 ? NULL : MISMATCH;
    }
    out->offset = 0;
    out->op = I_MOV;
    return ptx_source(scope, from, type, false, &out->s[0]);
}

static const struct {
    const char *name, *operation; /* operation: NULL none, else mul.lo's "lo" */
    enum ptx_op op, float_op;
    int nsources;
} arithmetic[] = {
    {"add", NULL, I_ADD, I_FADD, 2},           {"sub", NULL, I_SUB, I_FSUB, 2},
    {"mul", "lo", I_MUL_LO, I_NOTHING, 2},     {"mul", "hi", I_MUL_HI, I_NOTHING, 2},
    {"mul", "wide", I_MUL_WIDE, I_NOTHING, 2}, {"mul", NULL, I_NOTHING, I_FMUL, 2},
    {"mad", "lo", I_MAD_LO, I_NOTHING, 3},     {"mad", "wide", I_MAD_WIDE, I_NOTHING, 3},
    {"fma", NULL, I_NOTHING, I_FFMA, 3},       {"and", NULL, I_AND, I_NOTHING, 2},
    {"or", NULL, I_OR, I_NOTHING, 2},          {"xor", NULL, I_XOR, I_NOTHING, 2},
    {"not", NULL, I_NOT, I_NOTHING, 1},        {"neg", NULL, I_NEG, I_FNEG, 1},
    {"abs", NULL, I_ABS, I_NOTHING, 1},        {"shl", NULL, I_SHL, I_NOTHING, 2},
    {"shr", NULL, I_SHR, I_NOTHING, 2},        {"min", NULL, I_MIN, I_NOTHING, 2},
    {"max", NULL, I_MAX, I_NOTHING, 2},        {"rem", NULL, I_REM, I_NOTHING, 2},
    {"div", NULL, I_DIV, I_NOTHING, 2},
};

static const char *compute(struct ptx_scope *scope, const struct ptx_text *text,
                           const struct parts *parts, struct ptx_insn *out)
{
    int nsources = 0;
    if (parts->ntypes != 1 || parts->noperations > 1) {
        return UNKNOWN;
    }
    struct type type = parts->types[0];
    for (size_t i = 0; i < sizeof arithmetic / sizeof arithmetic[0]; i++) {
        const char *operation = arithmetic[i].operation;
        if (strcmp(arithmetic[i].name, text->parts[0]) == 0 &&
            (operation == NULL
                 ? parts->noperations == 0
                 : parts->noperations == 1 && strcmp(operation, parts->operation) == 0)) {
            out->op = (uint8_t)(type.kind == 'f' ? arithmetic[i].float_op : arithmetic[i].op);
            nsources = arithmetic[i].nsources;
        }
    }
    bool logical = (out->op >= I_AND && out->op <= I_NOT) || out->op == I_SHL;
    bool integer = type.kind == 'u' || type.kind == 's';
    if (out->op == I_NOTHING || (type.kind == 'f' && type.bytes != 4) ||
        (logical ? type.kind != 'b' && type.kind != 'p'
                 : type.kind != 'f' && !integer && out->op != I_SHR) ||
        type.bytes == 1) {
        if (!(type.kind == 'p' && logical && out->op != I_SHL)) {
            return UNKNOWN;
        }
    }
    CHECK(count(text, 1 + nsources));
    bool wide = out->op == I_MUL_WIDE || out->op == I_MAD_WIDE;
    struct type result = {wide ? 2 * type.bytes : type.bytes, type.kind};
    if (result.bytes > 8) {
        return UNKNOWN;
    }
    out->bytes = (uint8_t)type.bytes;
    out->is_signed = type.kind == 's';
    out->mask = type.kind == 'p' ? 1 : ptx_mask(result.bytes);
    CHECK(ptx_destination(scope, text->operands[0], result, false, &out->d[0]));
    for (int i = 0; i < nsources; i++) {
        bool amount = i == 1 && (out->op == I_SHL || out->op == I_SHR);
        struct type wanted = amount ? (struct type){4, 'u'} : i == 2 ? result : type;
        CHECK(ptx_source(scope, text->operands[i + 1], wanted, false, &out->s[i]));
    }
    return NULL;
}

static const char *convert(struct ptx_scope *scope, const struct ptx_text *text,
                           const struct parts *parts, struct ptx_insn *out)
{
    CHECK(count(text, 2));
    if (parts->ntypes != 2 || parts->noperations != 0 ||
        strchr("us", parts->types[0].kind) == NULL || strchr("us", parts->types[1].kind) == NULL) {
        return UNKNOWN;
    }
    out->op = I_CVT;
    out->bytes = (uint8_t)parts->types[0].bytes;
    out->is_signed = parts->types[0].kind == 's';
    out->from_bytes = (uint8_t)parts->types[1].bytes;
    out->from_signed = parts->types[1].kind == 's';
    CHECK(ptx_destination(scope, text->operands[0], parts->types[0], true, &out->d[0]));
    CHECK(mask_of_register(scope, out));
    return ptx_source(scope, text->operands[1], parts->types[1], true, &out->s[0]);
}

static const char *compare(struct ptx_scope *scope, const struct ptx_text *text,
                           const struct parts *parts, struct ptx_insn *out)
{
    static const struct {
        const char *name;
        enum ptx_compare compare;
    } names[] = {{"eq", CMP_EQ}, {"ne", CMP_NE}, {"lt", CMP_LT}, {"le", CMP_LE}, {"gt", CMP_GT},
                 {"ge", CMP_GE}, {"lo", CMP_LT}, {"ls", CMP_LE}, {"hi", CMP_GT}, {"hs", CMP_GE}};
    int found = -1;
    CHECK(count(text, 3));
    for (int i = 0; i < (int)(sizeof names / sizeof names[0]); i++) {
        if (parts->noperations == 1 && strcmp(names[i].name, parts->operation) == 0) {
            found = i;
        }
    }
    struct type type = parts->types[0];
    if (found < 0 || parts->ntypes != 1 || type.bytes < 2 ||
        (type.kind == 'f' && type.bytes != 4) || (found >= 6 && type.kind != 'u') ||
        (type.kind == 'b' && found > 1)) {
        return UNKNOWN;
    }
    out->op = type.kind == 'f' ? I_FSETP : I_SETP;
    out->compare = (uint8_t)names[found].compare;
    out->bytes = (uint8_t)type.bytes;
    out->is_signed = type.kind == 's';
    CHECK(ptx_destination(scope, text->operands[0], (struct type){1, 'p'}, false, &out->d[0]));
    CHECK(ptx_source(scope, text->operands[1], type, false, &out->s[0]));
    return ptx_source(scope, text->operands[2], type, false, &out->s[1]);
}

static const char *select_one(struct ptx_scope *scope, const struct ptx_text *text,
                              const struct parts *parts, struct ptx_insn *out)
{
    CHECK(count(text, 4));
    if (parts->ntypes != 1 || parts->noperations != 0) {
        return UNKNOWN;
    }
    out->op = I_SELP;
    CHECK(ptx_destination(scope, text->operands[0], parts->types[0], false, &out->d[0]));
    CHECK(ptx_source(scope, text->operands[1], parts->types[0], false, &out->s[0]));
    CHECK(ptx_source(scope, text->operands[2], parts->types[0], false, &out->s[1]));
    return ptx_source(scope, text->operands[3], (struct type){1, 'p'}, false, &out->s[2]);
}

static const char *control(struct ptx_scope *scope, const struct ptx_text *text,
                           const struct parts *parts, struct ptx_insn *out)
{
    const char *name = text->parts[0];
    if (strcmp(name, "bra") == 0) {
        out->op = I_BRA;
        return count(text, 1);
    }
    if (strcmp(name, "nanosleep") == 0) {
        CHECK(needs(scope, 70, 63));
        CHECK(count(text, 1));
        out->op = I_NANOSLEEP;
        return ptx_source(scope, text->operands[0], (struct type){4, 'u'}, false, &out->s[0]);
    }
    if (strncmp(name, "prefetch", 8) == 0) {
        out->op = I_NOTHING;
        return ptx_address(scope, text->operands[0], false, out);
    }
    if (!is_one_of(name, "ret exit trap membar fence griddepcontrol")) {
        return UNKNOWN;
    }
    CHECK(count(text, 0));
    if (strcmp(name, "ret") == 0 || strcmp(name, "exit") == 0) {
        out->op = I_RET;
    } else if (strcmp(name, "trap") == 0) {
        out->op = I_TRAP;
    } else if (strcmp(name, "membar") == 0) {
        out->op = I_FENCE;
        return text->nparts == 2 && is_one_of(text->parts[1], "cta gl sys") ? NULL : UNKNOWN;
    } else if (strcmp(name, "fence") == 0) {
        out->op = I_FENCE;
        CHECK(needs(scope, 70, 60));
        return parts->scope && (parts->noperations == 0 || strcmp(parts->operation, "sc") == 0)
                   ? NULL
                   : UNKNOWN;
    } else {
        CHECK(needs(scope, 90, 78));
        bool wait = strcmp(parts->operation, "wait") == 0;
        if (!wait && strcmp(parts->operation, "launch_dependents") != 0) {
            return UNKNOWN;
        }
        out->op = wait ? I_DEP_WAIT : I_DEP_LAUNCH;
        scope->kernel->waits_for_dependencies = scope->kernel->waits_for_dependencies || wait;
    }
    return NULL;
}

/* cvta.to.global.u64: the address is the same in both spaces. */
static const char *convert_address(struct ptx_scope *scope, const struct ptx_text *text,
                                   const struct parts *parts, struct ptx_insn *out)
{
    CHECK(count(text, 2));
    if (parts->ntypes != 1 || parts->types[0].bytes != 8 || !parts->global) {
        return UNKNOWN;
    }
    out->op = I_MOV;
    out->mask = UINT64_MAX;
    CHECK(ptx_destination(scope, text->operands[0], ptx_address_type, false, &out->d[0]));
    return ptx_source(scope, text->operands[1], ptx_address_type, false, &out->s[0]);
}

const char *ptx_decode(struct ptx_scope *scope, const struct ptx_text *text, struct ptx_insn *out)
{
    struct parts parts = {0};
    const char *name = text->parts[0];
    CHECK(read_parts(text, &parts));
    if (strcmp(name, "ld") == 0 || strcmp(name, "st") == 0) {
        return load_store(scope, text, &parts, out);
    }
    if (strcmp(name, "atom") == 0 || strcmp(name, "red") == 0) {
        return atomic(scope, text, &parts, out);
    }
    if (strcmp(name, "mov") == 0) {
        return move(scope, text, &parts, out);
    }
    if (strcmp(name, "cvta") == 0) {
        return convert_address(scope, text, &parts, out);
    }
    if (strcmp(name, "cvt") == 0) {
        return convert(scope, text, &parts, out);
    }
    if (strcmp(name, "setp") == 0) {
        return compare(scope, text, &parts, out);
    }
    if (strcmp(name, "selp") == 0) {
        return select_one(scope, text, &parts, out);
    }
    for (size_t i = 0; i < sizeof arithmetic / sizeof arithmetic[0]; i++) {
        if (strcmp(name, arithmetic[i].name) == 0) {
            return compute(scope, text, &parts, out);
        }
    }
    return control(scope, text, &parts, out);
}
