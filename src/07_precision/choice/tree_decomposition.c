#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PRECISION
#ifndef TL_NO_PLANNERS

// -- choice --
//
// Choose a scheme for each node so that one quantity is minimal and another within its limit; exact on graphs
// of small treewidth. This part builds the model (variables and tables), a tree decomposition of it, the
// Lagrangian bound over the decomposition, and the lists that close the gap. branch_and_bound.c covers graphs
// whose decomposition is too wide, choose.c the entry points.
//
//   minimise   sum cost[v][x_v] + conversions     subject to   sum loss[v][x_v] <= loss_limit
//
// or the loss subject to a cost limit. A net is one output of a node with its readers: they want it in the
// formats of their schemes, and each format other than the producer's is paid for once, however many
// readers want it. To price each edge by itself, give one net per edge. Costs and losses are whole numbers of
// any unit; the largest amounts of all nodes and nets must add up to less than 2^60.
//
//     cost |   A             A, B, C   corners of the convex hull, each found with one pair of weights
//          |    ` .  x       - - -     the line between two corners is the Lagrangian bound
//          |       B         x, o      choices; o is the best within the limit, found by lists
//          |        `o. - C
//          +----------|----- loss      the gap is o - bound; 0 where the lists are complete
//                   limit
//
// The choice never exceeds the limit and the bound is always valid: sums are rounded towards safety. The same
// desc gives the same choice everywhere. Among choices of equal value it need not find the one of least loss.
//
//     node --- table --- node        variables: the format of each node (its states)
//                |                   tables:    conversion prices of a net, over its producer and readers
//               node                 labels:    (limited, value) of a partial choice; the schemes of one
//                                               format are the labels that its state starts with
//
// A net with few readers is one table over producer and readers. A net with many readers gets a variable of
// its own, the set of formats that it is converted to, which must contain each reader's format: then all its
// tables have two variables, however many readers there are.
//
// Quantities are named by role, so that both directions share the code: the value is minimised, the limited
// quantity is kept within the limit. Normally the value is the cost and the limited quantity the loss; with
// least_loss they are exchanged. Conversions always count as cost.
//
// References: Dechter, Bucket Elimination, 1999 (decomposition). Handler, Zang, A dual algorithm for the
// constrained shortest path problem, 1980 (bound). Nemhauser, Ullmann, Discrete dynamic programming and
// capital allocation, 1969 (lists).

#define TLI_CHOICE_MOST_SCHEMES 16
#define TLI_CHOICE_MOST_FORMATS 8
#define TLI_CHOICE_MOST_NODES   ((int32_t)1 << 24)
#define TLI_CHOICE_MOST_SUM     ((uint64_t)1 << 60)
#define TLI_CHOICE_INFINITE     ((uint64_t)1 << 62)
#define TLI_CHOICE_NONE         UINT32_MAX
#define TLI_CHOICE_WORK         200000000u

typedef struct tli_choice_net {
    int32_t         producer;     // node
    const int32_t  *readers;      // [reader_count] nodes in any order; duplicates count once
    int32_t         reader_count; // 0 = not read: no price
    const uint64_t *costs;        // [format_count x format_count] row: from, column: to, or TL_FORBIDDEN;
                                  // the diagonal is not read: 0
} tli_choice_net;

typedef struct tli_choice_desc {
    int32_t  node_count;          // 1 .. 2^24
    int32_t  scheme_count;        // 1 .. 16
    int32_t  format_count;        // with formats 1 .. 8; without 0 or scheme_count
    const int32_t *formats;       // [scheme_count] format of each scheme; 0 = a format for each scheme
    const uint64_t *costs;        // [node_count x scheme_count] or TL_FORBIDDEN
    const uint64_t *losses;       // [node_count x scheme_count]; not read where the cost is forbidden
    const tli_choice_net *nets;    // [net_count] any number per node, in any order; cycles are allowed
    int32_t  net_count;
    int32_t  least_loss;          // 0 = least cost within loss_limit; 1 = least loss within cost_limit
    uint64_t loss_limit;          // 0 = no loss is allowed; TL_UNLIMITED
    uint64_t cost_limit;          // for least_loss, conversions included; TL_UNLIMITED
    uint64_t work_limit;          // elementary steps, of 2 to 8 ns each; 0 = 200 million
} tli_choice_desc;

// How the answer was found.
typedef enum tli_choice_method {
    TLI_CHOICE_ELIMINATION,            // by lists over a tree decomposition; exact where they end
    TLI_CHOICE_BOUND,                  // the Lagrangian bound over a tree decomposition met the value: exact
    TLI_CHOICE_SEARCH                  // too wide: bound from chains, branch and bound over them
} tli_choice_method;

typedef struct tli_choice_plan {
    const uint8_t *schemes;       // [node_count]
    uint64_t cost, conversion_cost, loss;  // cost includes conversions
    int32_t  conversion_count;    // pairs of a net and a format that it is converted to
    uint64_t bound;               // lower bound of the minimised quantity within the limit
    int32_t  proven;              // 1 = the choice is optimal: its value equals the bound
    double   gap_ratio;           // (value - bound) / bound; 0 = proven, 0.01 = at most 1 % above; the value
                                  // itself where the bound is 0
    tli_choice_method method;
    uint64_t nearest_limit;       // after TL_ERROR_INFEASIBLE, else 0: the least limit that can be met (in a
                                  // graph too wide for lists one that was met); TL_UNLIMITED = none
    uint64_t work;                // elementary steps done
    void    *memory;
} tli_choice_plan;

typedef struct tli_front_point {
    uint64_t loss, cost;          // the least cost known within this loss
    uint64_t bound_cost;          // lower bound of the cost within this loss
    const uint8_t *schemes;       // [node_count] a choice with this loss and cost
} tli_front_point;

typedef struct tli_choice_front {
    const tli_front_point *points; // [point_count] loss rises, cost falls
    int32_t  point_count;         // > 0
    int32_t  complete;            // 1 = the whole front, each point proven; 0 = a selection
    void    *memory;
} tli_choice_front;

static int32_t tli_choice_format_count(const tli_choice_desc *desc) {
    return desc->formats ? desc->format_count : desc->scheme_count;
}

static int32_t tli_choice_format(const tli_choice_desc *desc, int32_t scheme) {
    return desc->formats ? desc->formats[scheme] : scheme;
}

// The price of converting a net from one format to a set of formats; TLI_CHOICE_INFINITE if one of the
// conversions is forbidden.
static uint64_t tli_choice_convert(const tli_choice_desc *desc, const tli_choice_net *net, int32_t from,
                                   uint32_t formats) {
    const uint64_t *row = net->costs + (size_t)from * (size_t)tli_choice_format_count(desc);
    uint64_t sum = 0;
    int32_t to;
    for (to = 0; formats >> to; to++) {
        if (to == from || !(formats >> to & 1)) continue;
        if (row[to] == TL_FORBIDDEN) return TLI_CHOICE_INFINITE;
        sum += row[to];
    }
    return sum;
}

// -- choice: largest sums --

// Add the largest amount that one node or net can have; returns 0 if it or the sum reaches 2^60.
static int tli_choice_add_most(uint64_t *sum, uint64_t most) {
    if (most >= TLI_CHOICE_MOST_SUM) return 0;
    *sum += most;
    return *sum < TLI_CHOICE_MOST_SUM;
}

static int tli_choice_add_node_most(const tli_choice_desc *desc, int32_t node, uint64_t *cost, uint64_t *loss) {
    uint64_t most_cost = 0, most_loss = 0;
    size_t at = (size_t)node * (size_t)desc->scheme_count, end = at + (size_t)desc->scheme_count;
    for (; at < end; at++) {
        if (desc->costs[at] == TL_FORBIDDEN) continue;
        if (desc->costs[at] > most_cost) most_cost = desc->costs[at];
        if (desc->losses[at] > most_loss) most_loss = desc->losses[at];
    }
    return tli_choice_add_most(cost, most_cost) && tli_choice_add_most(loss, most_loss);
}

static int tli_choice_add_net_most(const tli_choice_desc *desc, const tli_choice_net *net, uint64_t *cost) {
    int32_t count = tli_choice_format_count(desc), from, to;
    uint64_t most = 0;
    for (from = 0; from < count; from++) {
        uint64_t sum = 0;
        for (to = 0; to < count; to++) {
            uint64_t one = net->costs[(size_t)from * (size_t)count + (size_t)to];
            if (to != from && one != TL_FORBIDDEN && !tli_choice_add_most(&sum, one)) return 0;
        }
        if (sum > most) most = sum;
    }
    return tli_choice_add_most(cost, most);
}

// Sum the largest costs and the largest losses of all nodes and nets; returns 0 if a sum reaches 2^60.
static int tli_choice_add_all_most(const tli_choice_desc *desc, uint64_t *cost, uint64_t *loss) {
    int32_t i;
    *cost = *loss = 0;
    for (i = 0; i < desc->node_count; i++)
        if (!tli_choice_add_node_most(desc, i, cost, loss)) return 0;
    for (i = 0; i < desc->net_count; i++)
        if (!tli_choice_add_net_most(desc, &desc->nets[i], cost)) return 0;
    return 1;
}

// -- choice: sums of a choice --

typedef struct tli_choice_sums {
    uint64_t cost, conversion_cost, loss;
    int32_t  conversion_count;
} tli_choice_sums;

static uint32_t tli_choice_wanted(const tli_choice_desc *desc, const tli_choice_net *net,
                                  const uint8_t *schemes) {
    uint32_t formats = 0;
    int32_t i;
    for (i = 0; i < net->reader_count; i++) formats |= 1u << tli_choice_format(desc, schemes[net->readers[i]]);
    return formats;
}

// Add up a choice; *node, *net = the first with a forbidden scheme or conversion, -1 = none.
static void tli_choice_measure(const tli_choice_desc *desc, const uint8_t *schemes,
                               tli_choice_sums *sums, int32_t *node, int32_t *net) {
    int32_t i;
    tli_zero(sums, sizeof *sums);
    *node = *net = -1;
    for (i = 0; i < desc->node_count; i++) {
        size_t at = (size_t)i * (size_t)desc->scheme_count + schemes[i];
        if (desc->costs[at] == TL_FORBIDDEN) { *node = i; return; }
        sums->cost += desc->costs[at];
        sums->loss += desc->losses[at];
    }
    for (i = 0; i < desc->net_count; i++) {
        int32_t from = tli_choice_format(desc, schemes[desc->nets[i].producer]);
        uint32_t formats = tli_choice_wanted(desc, &desc->nets[i], schemes) & ~(1u << from);
        uint64_t cost = tli_choice_convert(desc, &desc->nets[i], from, formats);
        if (cost == TLI_CHOICE_INFINITE) { *net = i; return; }
        sums->conversion_cost += cost;
        for (; formats; formats &= formats - 1) sums->conversion_count++;
    }
    sums->cost += sums->conversion_cost;
}

// -- choice: variables and tables --

// A choice for part of the graph. A label that joins two others refers to them, so that the schemes can be
// recovered at the end.
typedef struct tli_choice_label {
    uint64_t limited, value, mixed;   // mixed: the weighted sum of both, see tli_choice_weigh
    uint32_t left, right;             // labels that it joins. A leaf has left = TLI_CHOICE_NONE and right =
                                      // node x 16 + scheme; the empty label TLI_CHOICE_NONE in both
} tli_choice_label;

typedef struct tli_choice_state {
    uint32_t code;                    // format, or set of formats
    uint32_t first_leaf, leaf_count;
} tli_choice_state;

typedef struct tli_choice_variable {
    int32_t node;                     // -1 = the set of formats that a net is converted to
    int32_t first_state, state_count;
    int32_t owner;                    // the node, or the producer of the net
    int32_t bucket;                   // the bucket that eliminates it
} tli_choice_variable;

#define TLI_CHOICE_RANGE_BITS 12
#define TLI_CHOICE_TABLE_SCOPE 4
#define TLI_CHOICE_TABLE_CELLS 256
#define TLI_CHOICE_SET_FORMATS 5          // most formats in one set variable; a net with more has several

typedef struct tli_choice_table {
    int32_t scope[TLI_CHOICE_TABLE_SCOPE], scope_count;  // variables; the first one's state varies fastest
    int32_t first_cell, cell_count;
} tli_choice_table;

// A summand of a bucket: a table, or the result of an earlier bucket.
typedef struct tli_choice_part {
    int32_t source;                   // table, or ~bucket
    int32_t first_stride;             // [1 + scope_count] distance of its cells per state of each variable
} tli_choice_part;

// A bucket eliminates a variable: for each row, a combination of states of its scope, it finds the best state
// of the variable. Its rows are a summand of the next bucket that eliminates a variable of the scope.
typedef struct tli_choice_bucket {
    int32_t variable;                 // that it eliminates; -1 = none: the last bucket, which joins components
    int32_t first_scope, scope_count; // variables of its rows; the first one's state varies fastest
    int32_t first_part, part_count;
    int32_t first_row, row_count;
} tli_choice_bucket;

// One quantity (weighted sum, or limited quantity) over the decomposition: the amounts of states and cells, and
// for each row the least total of the buckets up to it (inside) and of everything else (outside).
typedef struct tli_choice_view {
    uint64_t *states, *cells, *inside, *outside;
} tli_choice_view;

typedef struct tli_choice {
    tl_env               *env;
    const tli_choice_desc *desc;
    const uint16_t       *allowed;    // [node_count] bits 1 << scheme
    int32_t   format_count, swap;     // swap: least_loss
    int32_t   pairwise;               // 1 = no table of more than two variables
    int32_t   hub;                    // too wide: the node to branch on, -1 = none
    uint64_t  limit, value_sum, limited_sum;  // sums: of the largest amounts of all nodes and nets
    uint64_t  slack;                  // most by which a scheme's limited quantity may exceed its node's least
    int32_t   complete, pruned;       // complete: keep schemes beyond the slack; pruned: some were left out
    tli_choice_variable *variables; int32_t variable_count, variable_capacity;
    tli_choice_state    *states;    int32_t state_count, state_capacity;
    tli_choice_table    *tables;    int32_t table_count, table_capacity;
    uint64_t        *cells;     int32_t cell_count, cell_capacity;
    tli_choice_label    *labels;    int32_t label_count, label_capacity, leaf_count;
    tli_choice_bucket   *buckets;   int32_t bucket_count;
    tli_choice_part     *parts;     int32_t part_count, part_capacity;
    int32_t         *strides;   int32_t stride_count, stride_capacity;
    int32_t         *scopes;    int32_t scope_count, scope_capacity;
    uint32_t        *marks, mark;     // [node_count]
    int32_t         *readers;         // [node_count]
    int32_t         *at;              // [largest part_count] present cell of each summand of a bucket
    uint8_t         *picks;           // [variable_count] states of the choice at hand
    uint8_t         *schemes;         // [node_count] schemes of the choice at hand
    uint64_t row_count, pass_work, work, most_cells;  // pass_work: of one pass over all cells
    tli_choice_view mixed, limited;
    uint64_t value_weight, limited_weight, penalty;  // penalty: weighted price of a forbidden conversion
    uint64_t value_hint, limited_hint;  // weights to try first; 0 and 0 = none
    int32_t  shift, mixed_bits;       // weighted sums are below 2^(mixed_bits + 1)
    // lists
    int32_t       *first_label, *row_labels;  // [row_count]
    tli_choice_label  *pool, *scratch; int32_t pool_count, pool_capacity, scratch_capacity;
    uint64_t      *ranges;            // [2^TLI_CHOICE_RANGE_BITS]
    uint64_t       most_mixed;        // labels with larger weighted sums are left out
    uint64_t       dropped;           // least weighted sum of the labels that were cut off; UINT64_MAX = none
    int32_t        most_labels, label_limit;  // of one list: now, and the largest to try
    int32_t        over;              // 1 = the lists were abandoned: too much work or room
    uint64_t       work_limit, longest;  // longest: most labels of one list, beyond it the lists are abandoned
    uint8_t       *best;              // [node_count] best choice within the limit
    uint64_t       best_value, best_limited, bound;
    int32_t        found;             // 1 = best is valid
    tli_choice_method method;
    uint64_t       nearest;           // limit that can be met, where the choice is infeasible
} tli_choice;

static int tli_choice_add_label(tli_choice *x, const tli_choice_label *label) {
    if (!tli_grow(x->env, (void **)&x->labels, &x->label_capacity, x->label_count, (int64_t)x->label_count + 1,
                  sizeof *x->labels)) return 0;
    x->labels[x->label_count++] = *label;
    return 1;
}

static int tli_choice_add_state(tli_choice *x, uint32_t code, int32_t first_leaf, int32_t leaf_count) {
    tli_choice_state *state;
    if (!tli_grow(x->env, (void **)&x->states, &x->state_capacity, x->state_count, (int64_t)x->state_count + 1,
                  sizeof *x->states)) return 0;
    state = &x->states[x->state_count++];
    state->code = code;
    state->first_leaf = (uint32_t)first_leaf;
    state->leaf_count = (uint32_t)leaf_count;
    return 1;
}

static int tli_choice_add_variable(tli_choice *x, int32_t node) {
    tli_choice_variable *variable;
    if (!tli_grow(x->env, (void **)&x->variables, &x->variable_capacity, x->variable_count,
                  (int64_t)x->variable_count + 1, sizeof *x->variables)) return 0;
    variable = &x->variables[x->variable_count++];
    variable->node = node;
    variable->first_state = x->state_count;
    variable->state_count = 0;
    variable->owner = node;
    variable->bucket = -1;
    return 1;
}

// Whether another scheme of the same format is at least as good in both quantities; of equal ones the first
// is kept.
static int tli_choice_is_dominated(const tli_choice *x, int32_t node, int32_t scheme) {
    const tli_choice_desc *desc = x->desc;
    const uint64_t *costs = desc->costs + (size_t)node * (size_t)desc->scheme_count;
    const uint64_t *losses = desc->losses + (size_t)node * (size_t)desc->scheme_count;
    int32_t k;
    for (k = 0; k < desc->scheme_count; k++) {
        if (k == scheme || !(x->allowed[node] >> k & 1) || costs[k] == TL_FORBIDDEN) continue;
        if (tli_choice_format(desc, k) != tli_choice_format(desc, scheme)) continue;
        if (costs[k] > costs[scheme] || losses[k] > losses[scheme]) continue;
        if (costs[k] < costs[scheme] || losses[k] < losses[scheme] || k < scheme) return 1;
    }
    return 0;
}

static uint64_t tli_choice_least_limited(const tli_choice *x, int32_t node) {
    const tli_choice_desc *desc = x->desc;
    size_t row = (size_t)node * (size_t)desc->scheme_count;
    uint64_t least = UINT64_MAX;
    int32_t k;
    for (k = 0; k < desc->scheme_count; k++) {
        uint64_t limited = x->swap ? desc->costs[row + (size_t)k] : desc->losses[row + (size_t)k];
        if ((x->allowed[node] >> k & 1) && limited < least) least = limited;
    }
    return least;
}

// Find the slack: what remains of the limit if all nodes have their least limited quantity.
static void tli_choice_find_slack(tli_choice *x) {
    uint64_t sum = 0;
    int32_t i;
    for (i = 0; i < x->desc->node_count; i++) sum += tli_choice_least_limited(x, i);
    x->slack = x->complete || sum > x->limit ? UINT64_MAX : x->limit - sum;
}

static int tli_choice_add_node(tli_choice *x, int32_t node) {
    const tli_choice_desc *desc = x->desc;
    size_t row = (size_t)node * (size_t)desc->scheme_count;
    uint64_t least = tli_choice_least_limited(x, node);
    int32_t format, k;
    if (!tli_choice_add_variable(x, node)) return 0;
    for (format = 0; format < x->format_count; format++) {
        int32_t first = x->label_count;
        for (k = 0; k < desc->scheme_count; k++) {
            tli_choice_label leaf;
            uint64_t cost = desc->costs[row + (size_t)k], loss = desc->losses[row + (size_t)k];
            if (!(x->allowed[node] >> k & 1) || cost == TL_FORBIDDEN) continue;
            if (tli_choice_format(desc, k) != format || tli_choice_is_dominated(x, node, k)) continue;
            leaf.value = x->swap ? loss : cost;
            leaf.limited = x->swap ? cost : loss;
            if (leaf.limited - least > x->slack) { x->pruned = 1; continue; }
            leaf.mixed = 0;
            leaf.left = TLI_CHOICE_NONE;
            leaf.right = (uint32_t)node * TLI_CHOICE_MOST_SCHEMES + (uint32_t)k;
            if (!tli_choice_add_label(x, &leaf)) return 0;
        }
        if (x->label_count == first) continue;
        if (!tli_choice_add_state(x, (uint32_t)format, first, x->label_count - first)) return 0;
        x->variables[node].state_count++;
    }
    return 1;
}

static const tli_choice_state *tli_choice_states_of(const tli_choice *x, int32_t variable) {
    return x->states + x->variables[variable].first_state;
}

static uint32_t tli_choice_formats_of(const tli_choice *x, int32_t variable) {
    const tli_choice_state *states = tli_choice_states_of(x, variable);
    uint32_t formats = 0;
    int32_t i;
    for (i = 0; i < x->variables[variable].state_count; i++) formats |= 1u << states[i].code;
    return formats;
}

// Add a table and return its cells, which the caller fills in; NULL = no memory.
static uint64_t *tli_choice_add_table(tli_choice *x, const int32_t *scope, int32_t scope_count) {
    tli_choice_table *table;
    int32_t cells = 1, i;
    for (i = 0; i < scope_count; i++) cells *= x->variables[scope[i]].state_count;
    if (!tli_grow(x->env, (void **)&x->tables, &x->table_capacity, x->table_count, (int64_t)x->table_count + 1,
                  sizeof *x->tables)) return NULL;
    if (!tli_grow(x->env, (void **)&x->cells, &x->cell_capacity, x->cell_count, (int64_t)x->cell_count + cells,
                  sizeof *x->cells)) return NULL;
    table = &x->tables[x->table_count++];
    tli_zero(table, sizeof *table);
    tli_copy(table->scope, scope, (size_t)scope_count * sizeof *scope);
    table->scope_count = scope_count;
    table->first_cell = x->cell_count;
    table->cell_count = cells;
    x->cell_count += cells;
    return x->cells + table->first_cell;
}

// Add a net as one table over its producer, unless that has a single state, and its readers.
static int tli_choice_add_direct(tli_choice *x, const tli_choice_net *net, const int32_t *scope,
                                 int32_t scope_count, uint32_t fixed) {
    uint64_t *cells = tli_choice_add_table(x, scope, scope_count);
    int32_t digits[TLI_CHOICE_TABLE_SCOPE] = { 0, 0, 0, 0 }, cell, i, count;
    if (!cells) return 0;
    count = x->tables[x->table_count - 1].cell_count;
    for (cell = 0; cell < count; cell++) {
        uint32_t from = tli_choice_states_of(x, net->producer)[0].code, formats = fixed;
        for (i = 0; i < scope_count; i++) {
            uint32_t code = tli_choice_states_of(x, scope[i])[digits[i]].code;
            if (scope[i] == net->producer) from = code;
            else formats |= 1u << code;
        }
        cells[cell] = tli_choice_convert(x->desc, net, (int32_t)from, formats);
        for (i = 0; i < scope_count && ++digits[i] == x->variables[scope[i]].state_count; i++) digits[i] = 0;
    }
    return 1;
}

// Add a variable for the formats within `range` that a net is converted to. One table with the producer holds
// the prices; a table with each reader forbids sets without the reader's format.
static int tli_choice_add_set(tli_choice *x, const tli_choice_net *net, int32_t reader_count, uint32_t range,
                              uint32_t fixed) {
    int32_t scope[2], set = x->variable_count, i, k, from;
    const tli_choice_state *states;
    uint64_t *cells;
    uint32_t formats = 0;
    if (!tli_choice_add_variable(x, -1)) return 0;
    x->variables[set].owner = net->producer;
    do {
        if ((formats & fixed & range) == (fixed & range)) {
            if (!tli_choice_add_state(x, formats, 0, 1)) return 0;
            x->variables[set].state_count++;
        }
        formats = (formats - range) & range;
    } while (formats);
    scope[0] = set;
    scope[1] = net->producer;
    cells = tli_choice_add_table(x, scope, x->variables[net->producer].state_count > 1 ? 2 : 1);
    if (!cells) return 0;
    states = tli_choice_states_of(x, set);
    for (k = 0; k < x->variables[net->producer].state_count; k++) {
        from = (int32_t)tli_choice_states_of(x, net->producer)[k].code;
        for (i = 0; i < x->variables[set].state_count; i++)
            *cells++ = (range >> from & 1) && !(states[i].code >> from & 1)
                ? TLI_CHOICE_INFINITE : tli_choice_convert(x->desc, net, from, states[i].code);
    }
    for (k = 0; k < reader_count; k++) {
        int32_t at;
        scope[1] = x->readers[k];
        cells = tli_choice_add_table(x, scope, 2);
        if (!cells) return 0;
        for (at = 0; at < x->variables[scope[1]].state_count; at++) {
            uint32_t wanted = range & 1u << tli_choice_states_of(x, scope[1])[at].code;
            for (i = 0; i < x->variables[set].state_count; i++)
                *cells++ = wanted & ~states[i].code ? TLI_CHOICE_INFINITE : 0;
        }
    }
    return 1;
}

static int tli_choice_add_net(tli_choice *x, const tli_choice_net *net) {
    int32_t scope[TLI_CHOICE_TABLE_SCOPE], scope_count = 0, reader_count = 0, cells, i;
    uint32_t fixed = 0, range = 0;
    x->marks[net->producer] = ++x->mark;
    cells = x->variables[net->producer].state_count;
    if (cells > 1) scope[scope_count++] = net->producer;
    for (i = 0; i < net->reader_count; i++) {
        int32_t reader = net->readers[i];
        if (x->marks[reader] == x->mark) continue;
        x->marks[reader] = x->mark;
        if (x->variables[reader].state_count == 1) { fixed |= tli_choice_formats_of(x, reader); continue; }
        range |= tli_choice_formats_of(x, reader);
        x->readers[reader_count++] = reader;
        if (cells <= TLI_CHOICE_TABLE_CELLS) cells *= x->variables[reader].state_count;
        if (reader_count < TLI_CHOICE_TABLE_SCOPE) scope[scope_count++] = reader;
    }
    range |= fixed;
    if (!range) return 1;
    if (reader_count < TLI_CHOICE_TABLE_SCOPE && cells <= TLI_CHOICE_TABLE_CELLS &&
        (!x->pairwise || scope_count <= 2))
        return tli_choice_add_direct(x, net, scope, scope_count, fixed);
    while (range) {
        uint32_t part = 0;
        for (i = 0; i < TLI_CHOICE_SET_FORMATS && range; i++) {
            part |= range & (0u - range);
            range &= range - 1;
        }
        if (!tli_choice_add_set(x, net, reader_count, part, fixed)) return 0;
    }
    return 1;
}

// Build variables and tables; node i is variable i. Returns 0 = no memory.
static int tli_choice_build(tli_choice *x) {
    tli_choice_label none;
    int32_t i;
    x->marks = (uint32_t *)tli_alloc_array(x->env, (uint64_t)x->desc->node_count, sizeof *x->marks);
    x->readers = (int32_t *)tli_alloc_array(x->env, (uint64_t)x->desc->node_count, sizeof *x->readers);
    x->schemes = (uint8_t *)tli_alloc_array(x->env, (uint64_t)x->desc->node_count, sizeof *x->schemes);
    tli_zero(&none, sizeof none);
    none.left = none.right = TLI_CHOICE_NONE;
    if (!x->marks || !x->readers || !x->schemes || !tli_choice_add_label(x, &none)) return 0;
    tli_choice_find_slack(x);
    for (i = 0; i < x->desc->node_count; i++) if (!tli_choice_add_node(x, i)) return 0;
    for (i = 0; i < x->desc->net_count; i++) if (!tli_choice_add_net(x, &x->desc->nets[i])) return 0;
    x->leaf_count = x->label_count;
    return 1;
}

// -- choice: a tree decomposition --
//
// Variables are eliminated one after the other, always one whose bucket (the variable and its neighbours) has
// the fewest cells; its neighbours become neighbours of each other (Dechter, Bucket Elimination, 1999).

typedef struct tli_choice_neighbours { int32_t *items, count, capacity; } tli_choice_neighbours;

typedef struct tli_choice_order {
    tli_choice            *x;
    tli_choice_neighbours *neighbours;    // [variable_count]
    uint64_t          *scores;        // [variable_count] cells of its bucket; UINT64_MAX = eliminated
    int32_t           *tree, leaf_count;  // tournament tree; tree[1] = the variable with the least score
} tli_choice_order;

static int tli_choice_link(tli_choice_order *o, int32_t from, int32_t to) {
    tli_choice_neighbours *n = &o->neighbours[from];
    int32_t i;
    for (i = 0; i < n->count; i++) if (n->items[i] == to) return 1;
    if (!tli_grow(o->x->env, (void **)&n->items, &n->capacity, n->count, (int64_t)n->count + 1,
                  sizeof *n->items)) return 0;
    n->items[n->count++] = to;
    o->x->work++;
    return 1;
}

static void tli_choice_unlink(tli_choice_order *o, int32_t from, int32_t to) {
    tli_choice_neighbours *n = &o->neighbours[from];
    int32_t i = 0;
    while (n->items[i] != to) i++;
    n->items[i] = n->items[--n->count];
}

static int tli_choice_beats(const tli_choice_order *o, int32_t a, int32_t b) {  // -1 = no variable
    if (a < 0 || b < 0) return b < 0;
    return o->scores[a] != o->scores[b] ? o->scores[a] < o->scores[b] : a < b;
}

static void tli_choice_score(tli_choice_order *o, int32_t variable) {
    const tli_choice *x = o->x;
    const tli_choice_neighbours *n = &o->neighbours[variable];
    uint64_t cells = (uint64_t)x->variables[variable].state_count;
    int32_t i, at;
    for (i = 0; i < n->count && cells <= x->most_cells; i++)
        cells *= (uint64_t)x->variables[n->items[i]].state_count;
    o->scores[variable] = n->count < 24 ? cells : cells | (uint64_t)1 << 61;
    for (at = (variable + o->leaf_count) / 2; at; at /= 2) {
        int32_t a = o->tree[2 * at], b = o->tree[2 * at + 1];
        o->tree[at] = tli_choice_beats(o, a, b) ? a : b;
    }
}

static int tli_choice_start_order(tli_choice_order *o) {
    tli_choice *x = o->x;
    int32_t i, k, m;
    o->leaf_count = 1;
    while (o->leaf_count < x->variable_count) o->leaf_count *= 2;
    o->neighbours = (tli_choice_neighbours *)tli_alloc_array(x->env, (uint64_t)x->variable_count,
                                                             sizeof *o->neighbours);
    o->scores = (uint64_t *)tli_alloc_array(x->env, (uint64_t)x->variable_count, sizeof *o->scores);
    o->tree = (int32_t *)tli_alloc_array(x->env, 2 * (uint64_t)o->leaf_count, sizeof *o->tree);
    if (!o->neighbours || !o->scores || !o->tree) return 0;
    for (i = 0; i < 2 * o->leaf_count; i++)
        o->tree[i] = i >= o->leaf_count && i - o->leaf_count < x->variable_count ? i - o->leaf_count : -1;
    for (i = 0; i < x->table_count; i++)
        for (k = 0; k < x->tables[i].scope_count; k++)
            for (m = 0; m < x->tables[i].scope_count; m++)
                if (m != k && !tli_choice_link(o, x->tables[i].scope[k], x->tables[i].scope[m])) return 0;
    for (i = 0; i < x->variable_count; i++) tli_choice_score(o, i);
    return 1;
}

static int tli_choice_eliminate(tli_choice_order *o, int32_t variable) {
    tli_choice *x = o->x;
    const tli_choice_neighbours *n = &o->neighbours[variable];
    tli_choice_bucket *bucket = &x->buckets[x->bucket_count];
    int32_t i, k;
    bucket->variable = variable;
    bucket->first_scope = x->scope_count;
    bucket->scope_count = n->count;
    if (!tli_grow(x->env, (void **)&x->scopes, &x->scope_capacity, x->scope_count,  // never NULL
                  (int64_t)x->scope_count + n->count + 1, sizeof *x->scopes)) return 0;
    tli_copy(x->scopes + x->scope_count, n->items, (size_t)n->count * sizeof *n->items);
    x->scope_count += n->count;
    x->variables[variable].bucket = x->bucket_count++;
    for (i = 0; i < n->count; i++) tli_choice_unlink(o, n->items[i], variable);
    for (i = 0; i < n->count; i++)
        for (k = 0; k < n->count; k++)
            if (k != i && !tli_choice_link(o, n->items[i], n->items[k])) return 0;
    o->scores[variable] = UINT64_MAX;
    for (i = 0; i < n->count; i++) tli_choice_score(o, n->items[i]);
    o->tree[variable + o->leaf_count] = -1;
    for (i = (variable + o->leaf_count) / 2; i; i /= 2) {
        int32_t a = o->tree[2 * i], b = o->tree[2 * i + 1];
        o->tree[i] = tli_choice_beats(o, a, b) ? a : b;
    }
    return 1;
}

// The remaining node with the most neighbours, or -1: fixing it narrows the rest most.
static int32_t tli_choice_find_hub(const tli_choice_order *o) {
    const tli_choice *x = o->x;
    int32_t hub = -1, i;
    for (i = 0; i < x->desc->node_count; i++) {
        if (o->scores[i] == UINT64_MAX || x->variables[i].state_count < 2) continue;
        if (hub < 0 || o->neighbours[i].count > o->neighbours[hub].count) hub = i;
    }
    return hub;
}

// Eliminate all variables. Returns 1 = done, 0 = no memory, -1 = too wide.
static int tli_choice_find_order(tli_choice *x) {
    tli_choice_order o;
    uint64_t cells = 0;
    int result = 0;
    int32_t i;
    tli_zero(&o, sizeof o);
    o.x = x;
    x->buckets = (tli_choice_bucket *)tli_alloc_array(x->env, (uint64_t)x->variable_count + 1,
                                                      sizeof *x->buckets);
    if (x->buckets && tli_choice_start_order(&o)) result = 1;
    while (result == 1 && x->bucket_count < x->variable_count) {
        int32_t variable = o.tree[1];
        cells += o.scores[variable];
        if (cells > x->most_cells) result = -1;
        else if (!tli_choice_eliminate(&o, variable)) result = 0;
    }
    if (result < 0) x->hub = tli_choice_find_hub(&o);
    for (i = 0; o.neighbours && i < x->variable_count; i++) tli_release(x->env, o.neighbours[i].items);
    tli_release(x->env, o.neighbours);
    tli_release(x->env, o.scores);
    tli_release(x->env, o.tree);
    return result;
}

// The bucket that adds up a table with this scope: the first to eliminate one of its variables.
static int32_t tli_choice_owner(const tli_choice *x, const int32_t *scope, int32_t scope_count) {
    int32_t owner = x->variable_count, i;
    for (i = 0; i < scope_count; i++)
        if (x->variables[scope[i]].bucket < owner) owner = x->variables[scope[i]].bucket;
    return owner;
}

// Make a summand of a bucket: find the strides of a table over `scope` for the bucket's variables.
static int tli_choice_add_part(tli_choice *x, int32_t source, const tli_choice_bucket *bucket,
                               const int32_t *scope, int32_t scope_count, tli_choice_part *part) {
    int32_t count = 1 + bucket->scope_count, i, k;
    if (!tli_grow(x->env, (void **)&x->strides, &x->stride_capacity, x->stride_count,
                  (int64_t)x->stride_count + count, sizeof *x->strides)) return 0;
    part->source = source;
    part->first_stride = x->stride_count;
    for (i = 0; i < count; i++) {
        int32_t variable = i ? x->scopes[bucket->first_scope + i - 1] : bucket->variable, stride = 1, found = 0;
        for (k = 0; k < scope_count; k++) {
            if (scope[k] == variable) { found = stride; break; }
            stride *= x->variables[scope[k]].state_count;
        }
        x->strides[x->stride_count++] = found;
    }
    return 1;
}

// Assign tables and results of buckets to the buckets that add them up. The last bucket gets those without a
// scope.
static int tli_choice_place_parts(tli_choice *x) {
    int32_t count = x->table_count + x->variable_count, most = 1, first = 0, i, result = 1;
    int32_t *owners = (int32_t *)tli_alloc_array(x->env, (uint64_t)count, sizeof *owners);
    x->parts = (tli_choice_part *)tli_alloc_array(x->env, (uint64_t)count, sizeof *x->parts);
    if (!owners || !x->parts) { tli_release(x->env, owners); return 0; }
    for (i = 0; i < count; i++) {
        const tli_choice_bucket *b = x->buckets + (i - x->table_count);
        owners[i] = i < x->table_count ? tli_choice_owner(x, x->tables[i].scope, x->tables[i].scope_count)
                                       : tli_choice_owner(x, x->scopes + b->first_scope, b->scope_count);
        x->buckets[owners[i]].part_count++;
    }
    for (i = 0; i < x->bucket_count; i++) {
        x->buckets[i].first_part = first;
        first += x->buckets[i].part_count;
        if (x->buckets[i].part_count > most) most = x->buckets[i].part_count;
        x->buckets[i].part_count = 0;
    }
    for (i = 0; i < count && result; i++) {
        const tli_choice_bucket *b = x->buckets + (i - x->table_count);
        tli_choice_bucket *owner = &x->buckets[owners[i]];
        tli_choice_part *part = &x->parts[owner->first_part + owner->part_count++];
        result = i < x->table_count
            ? tli_choice_add_part(x, i, owner, x->tables[i].scope, x->tables[i].scope_count, part)
            : tli_choice_add_part(x, ~(i - x->table_count), owner, x->scopes + b->first_scope, b->scope_count,
                                  part);
    }
    tli_release(x->env, owners);
    x->part_count = count;
    x->at = (int32_t *)tli_alloc_array(x->env, (uint64_t)most, sizeof *x->at);
    return result && x->at;
}

static int tli_choice_add_view(tli_choice *x, tli_choice_view *view) {
    view->states = (uint64_t *)tli_alloc_array(x->env, (uint64_t)x->state_count, sizeof *view->states);
    view->cells = (uint64_t *)tli_alloc_array(x->env, (uint64_t)x->cell_count, sizeof *view->cells);
    view->inside = (uint64_t *)tli_alloc_array(x->env, x->row_count, sizeof *view->inside);
    view->outside = (uint64_t *)tli_alloc_array(x->env, x->row_count, sizeof *view->outside);
    return view->states && view->cells && view->inside && view->outside;
}

// Make the decomposition and its arrays. Returns 1 = done, 0 = no memory, -1 = too wide.
static int tli_choice_decompose(tli_choice *x) {
    int result = tli_choice_find_order(x);
    int32_t i, k;
    if (result != 1) return result;
    x->buckets[x->bucket_count].variable = -1;
    x->buckets[x->bucket_count++].first_scope = x->scope_count;
    if (!tli_choice_place_parts(x)) return 0;
    for (i = 0; i < x->bucket_count; i++) {
        tli_choice_bucket *bucket = &x->buckets[i];
        int32_t rows = 1, states = bucket->variable < 0 ? 1 : x->variables[bucket->variable].state_count;
        for (k = 0; k < bucket->scope_count; k++)
            rows *= x->variables[x->scopes[bucket->first_scope + k]].state_count;
        bucket->first_row = (int32_t)x->row_count;
        bucket->row_count = rows;
        x->row_count += (uint64_t)rows;
        x->pass_work += (uint64_t)rows * (uint64_t)states * (uint64_t)(1 + bucket->part_count);
    }
    x->picks = (uint8_t *)tli_alloc_array(x->env, (uint64_t)x->variable_count, sizeof *x->picks);
    x->first_label = (int32_t *)tli_alloc_array(x->env, x->row_count, sizeof *x->first_label);
    x->row_labels = (int32_t *)tli_alloc_array(x->env, x->row_count, sizeof *x->row_labels);
    x->ranges = (uint64_t *)tli_alloc_array(x->env, (uint64_t)1 << TLI_CHOICE_RANGE_BITS, sizeof *x->ranges);
    return x->picks && x->first_label && x->row_labels && x->ranges && tli_choice_add_view(x, &x->mixed) &&
           tli_choice_add_view(x, &x->limited);
}

// -- choice: weighted sums over the decomposition --

// floor(a x weight / 2^shift) by a product of 128 bits. For a negative shift the result must fit.
static uint64_t tli_choice_scale(uint64_t a, uint64_t weight, int32_t shift) {
    uint64_t ah = a >> 32, al = a & 0xFFFFFFFFu, bh = weight >> 32, bl = weight & 0xFFFFFFFFu;
    uint64_t middle = (al * bl >> 32) + (ah * bl & 0xFFFFFFFFu) + (al * bh & 0xFFFFFFFFu);
    uint64_t high = ah * bh + (ah * bl >> 32) + (al * bh >> 32) + (middle >> 32), low = a * weight;
    if (shift <= 0) return low << -shift;
    if (shift >= 64) return high >> (shift - 64);
    return high << (64 - shift) | low >> shift;
}

static int32_t tli_choice_bits(uint64_t value) {
    int32_t bits = 0;
    while (value) { value >>= 1; bits++; }
    return bits;
}

static uint64_t tli_choice_mix(const tli_choice *x, uint64_t limited, uint64_t value) {
    return tli_choice_scale(value, x->value_weight, x->shift) +
           tli_choice_scale(limited, x->limited_weight, x->shift);
}

// Set the weights of the value and of the limited quantity, both at most 2^60, and fill in the weighted sums of
// labels, states and cells. Each term is rounded down by itself, so the terms of a choice add up to at most
// tli_choice_mix of its sums, and stay below 2^(mixed_bits + 1).
static void tli_choice_weigh(tli_choice *x, uint64_t value_weight, uint64_t limited_weight) {
    int32_t a = tli_choice_bits(value_weight) + tli_choice_bits(x->value_sum), i;
    int32_t b = tli_choice_bits(limited_weight) + tli_choice_bits(x->limited_sum);
    uint32_t k;
    x->value_weight = value_weight;
    x->limited_weight = limited_weight;
    x->shift = (a > b ? a : b) - x->mixed_bits;
    for (i = 0; i < x->leaf_count; i++)
        x->labels[i].mixed = tli_choice_mix(x, x->labels[i].limited, x->labels[i].value);
    for (i = 0; i < x->state_count; i++) {
        const tli_choice_label *leaves = x->labels + x->states[i].first_leaf;
        x->mixed.states[i] = leaves[0].mixed;
        for (k = 1; k < x->states[i].leaf_count; k++)
            if (leaves[k].mixed < x->mixed.states[i]) x->mixed.states[i] = leaves[k].mixed;
    }
    for (i = 0; i < x->cell_count; i++)
        x->mixed.cells[i] = x->cells[i] >= TLI_CHOICE_INFINITE ? x->penalty
            : tli_choice_scale(x->cells[i], x->swap ? limited_weight : value_weight, x->shift);
}

// Fill in the view of the limited quantity.
static void tli_choice_weigh_limited(tli_choice *x) {
    int32_t i;
    uint32_t k;
    for (i = 0; i < x->state_count; i++) {
        const tli_choice_label *leaves = x->labels + x->states[i].first_leaf;
        x->limited.states[i] = leaves[0].limited;
        for (k = 1; k < x->states[i].leaf_count; k++)
            if (leaves[k].limited < x->limited.states[i]) x->limited.states[i] = leaves[k].limited;
    }
    for (i = 0; i < x->cell_count; i++)
        x->limited.cells[i] = x->swap || x->cells[i] >= TLI_CHOICE_INFINITE ? x->cells[i] : 0;
}

typedef struct tli_choice_row { int32_t row, digits[24]; } tli_choice_row;

static void tli_choice_first_row(tli_choice *x, const tli_choice_bucket *bucket, tli_choice_row *row) {
    int32_t k;
    tli_zero(row, sizeof *row);
    row->row = bucket->first_row;
    for (k = 0; k < bucket->part_count; k++) {
        int32_t source = x->parts[bucket->first_part + k].source;
        x->at[k] = source >= 0 ? x->tables[source].first_cell : x->buckets[~source].first_row;
    }
}

static void tli_choice_next_row(tli_choice *x, const tli_choice_bucket *bucket, tli_choice_row *row) {
    const tli_choice_part *parts = x->parts + bucket->first_part;
    int32_t i, k;
    row->row++;
    for (i = 0; i < bucket->scope_count; i++) {
        int32_t states = x->variables[x->scopes[bucket->first_scope + i]].state_count;
        int32_t step = ++row->digits[i] == states ? 1 - states : 1;
        for (k = 0; k < bucket->part_count; k++) x->at[k] += step * x->strides[parts[k].first_stride + 1 + i];
        if (step == 1) return;
        row->digits[i] = 0;
    }
}

static int32_t tli_choice_bucket_states(const tli_choice *x, const tli_choice_bucket *bucket) {
    return bucket->variable < 0 ? 1 : x->variables[bucket->variable].state_count;
}

// The sum of the present row with a state; TLI_CHOICE_INFINITE where a conversion is forbidden.
static uint64_t tli_choice_add_cell(const tli_choice *x, const tli_choice_view *view,
                                    const tli_choice_bucket *bucket, int32_t state) {
    const tli_choice_part *parts = x->parts + bucket->first_part;
    uint64_t sum = bucket->variable < 0 ? 0 : view->states[x->variables[bucket->variable].first_state + state];
    int32_t k;
    for (k = 0; k < bucket->part_count; k++) {
        int32_t at = x->at[k] + state * x->strides[parts[k].first_stride];
        uint64_t one = parts[k].source >= 0 ? view->cells[at] : view->inside[at];
        if (one >= TLI_CHOICE_INFINITE) return TLI_CHOICE_INFINITE;
        sum += one;
    }
    return sum;
}

// Fill in `inside`: for each row the least sum over its bucket and the buckets below. Returns the least sum of
// all.
static uint64_t tli_choice_fill_inside(tli_choice *x, tli_choice_view *view) {
    tli_choice_row row;
    int32_t i, k, s;
    x->work += x->pass_work;
    for (i = 0; i < x->bucket_count; i++) {
        const tli_choice_bucket *bucket = &x->buckets[i];
        tli_choice_first_row(x, bucket, &row);
        for (k = 0; k < bucket->row_count; k++) {
            uint64_t least = TLI_CHOICE_INFINITE;
            for (s = 0; s < tli_choice_bucket_states(x, bucket); s++) {
                uint64_t sum = tli_choice_add_cell(x, view, bucket, s);
                if (sum < least) least = sum;
            }
            view->inside[row.row] = least;
            tli_choice_next_row(x, bucket, &row);
        }
    }
    return view->inside[x->row_count - 1];
}

// Fill in `outside`: for each row the least sum of everything that is not inside it.
static void tli_choice_fill_outside(tli_choice *x, tli_choice_view *view) {
    tli_choice_row row;
    int32_t i, k, s, p;
    uint64_t at;
    x->work += 2 * x->pass_work;
    for (at = 0; at < x->row_count; at++) view->outside[at] = TLI_CHOICE_INFINITE;
    view->outside[x->row_count - 1] = 0;
    for (i = x->bucket_count; i-- > 0;) {
        const tli_choice_bucket *bucket = &x->buckets[i];
        const tli_choice_part *parts = x->parts + bucket->first_part;
        tli_choice_first_row(x, bucket, &row);
        for (k = 0; k < bucket->row_count; k++) {
            for (s = 0; s < tli_choice_bucket_states(x, bucket); s++) {
                uint64_t sum = tli_choice_add_cell(x, view, bucket, s) + view->outside[row.row];
                if (sum >= TLI_CHOICE_INFINITE) continue;
                for (p = 0; p < bucket->part_count; p++) {
                    int32_t below = x->at[p] + s * x->strides[parts[p].first_stride];
                    if (parts[p].source < 0 && sum - view->inside[below] < view->outside[below])
                        view->outside[below] = sum - view->inside[below];
                }
            }
            tli_choice_next_row(x, bucket, &row);
        }
    }
}

// Find the states of a choice of least sum, from the variable that was eliminated last to the first.
static void tli_choice_read_picks(tli_choice *x, const tli_choice_view *view) {
    int32_t i, k, p, s;
    for (i = x->bucket_count - 1; i-- > 0;) {
        const tli_choice_bucket *bucket = &x->buckets[i];
        uint64_t least = UINT64_MAX;
        tli_choice_row row;
        tli_choice_first_row(x, bucket, &row);
        for (p = 0; p < bucket->part_count; p++)
            for (k = 0; k < bucket->scope_count; k++)
                x->at[p] += x->strides[x->parts[bucket->first_part + p].first_stride + 1 + k] *
                            x->picks[x->scopes[bucket->first_scope + k]];
        for (s = 0; s < tli_choice_bucket_states(x, bucket); s++) {
            uint64_t sum = tli_choice_add_cell(x, view, bucket, s);
            if (sum >= least) continue;
            least = sum;
            x->picks[bucket->variable] = (uint8_t)s;
        }
    }
}

// Within the picked formats take the schemes of least weighted sum, or of the least limited quantity.
static void tli_choice_read_schemes(tli_choice *x, int limited_alone) {
    int32_t i;
    uint32_t k;
    for (i = 0; i < x->desc->node_count; i++) {
        const tli_choice_state *state = &tli_choice_states_of(x, i)[x->picks[i]];
        const tli_choice_label *leaves = x->labels + state->first_leaf, *best = leaves;
        for (k = 1; k < state->leaf_count; k++) {
            uint64_t a = limited_alone ? leaves[k].limited : leaves[k].mixed;
            uint64_t b = limited_alone ? best->limited : best->mixed;
            if (a < b || (a == b && leaves[k].limited < best->limited)) best = &leaves[k];
        }
        x->schemes[i] = (uint8_t)(best->right % TLI_CHOICE_MOST_SCHEMES);
    }
}

// -- choice: the Lagrangian bound --
//
// Choices of least weighted sum are corners of the lower convex hull of (limited, value). Given a corner beyond
// the limit and one within it, the weights that make both equal yield a corner below the line through them, or
// prove that this line is part of the hull (Handler, Zang, A dual algorithm for the constrained shortest path
// problem, 1980).

typedef struct tli_choice_point { uint64_t limited, value; } tli_choice_point;

// Whether the work is spent. Never before a first choice has been found.
static int tli_choice_is_over(const tli_choice *x) { return x->found && x->work >= x->work_limit; }

// Measure the schemes at hand, and keep them if they are within the limit and better than the best.
static tli_choice_point tli_choice_keep(tli_choice *x) {
    tli_choice_sums sums;
    tli_choice_point point;
    int32_t node, net;
    tli_choice_measure(x->desc, x->schemes, &sums, &node, &net);
    x->work += (uint64_t)x->desc->node_count;
    point.value = x->swap ? sums.loss : sums.cost;
    point.limited = x->swap ? sums.cost : sums.loss;
    if (node >= 0 || net >= 0) { point.value = point.limited = UINT64_MAX; return point; }
    if (point.limited > x->limit) return point;
    if (x->found && (point.value > x->best_value ||
                     (point.value == x->best_value && point.limited >= x->best_limited))) return point;
    x->found = 1;
    x->best_value = point.value;
    x->best_limited = point.limited;
    tli_copy(x->best, x->schemes, (size_t)x->desc->node_count);
    return point;
}

// An upper bound of the weighted sum of a choice within the limit whose value is at most `value`.
static uint64_t tli_choice_most_mixed(const tli_choice *x, uint64_t value) {
    uint64_t most = value < x->value_sum ? value : x->value_sum;
    return tli_choice_mix(x, x->limit < x->limited_sum ? x->limit : x->limited_sum, most);
}

// A lower bound of the value of a choice within the limit whose weighted sum is at least `least_mixed`.
static uint64_t tli_choice_find_bound(const tli_choice *x, uint64_t least_mixed) {
    uint64_t low = 0, high = x->value_sum;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (tli_choice_most_mixed(x, middle) >= least_mixed) high = middle;
        else low = middle + 1;
    }
    return low;
}

// The choice of least weighted sum; *least = that sum.
static tli_choice_point tli_choice_find_point(tli_choice *x, uint64_t value_weight, uint64_t limited_weight,
                                              uint64_t *least) {
    tli_choice_weigh(x, value_weight, limited_weight);
    *least = tli_choice_fill_inside(x, &x->mixed);
    tli_choice_read_picks(x, &x->mixed);
    tli_choice_read_schemes(x, 0);
    return tli_choice_keep(x);
}

// Find the best Lagrangian bound between corner a, beyond the limit, and corner b, within it, whose value is
// larger. Ends with the weights of the best bound set, and `inside` filled in for them.
static void tli_choice_narrow(tli_choice *x, tli_choice_point a, tli_choice_point b) {
    uint64_t best_value = 1, best_limited = 0, least, bound;
    uint64_t terms = (uint64_t)x->variable_count + (uint64_t)x->table_count;
    int32_t i;
    for (i = 0; i < 100 && a.limited > b.limited && b.value > a.value && !tli_choice_is_over(x); i++) {
        uint64_t value_weight = a.limited - b.limited, limited_weight = b.value - a.value;
        tli_choice_point point = tli_choice_find_point(x, value_weight, limited_weight, &least);
        bound = tli_choice_find_bound(x, least);
        if (bound >= x->bound) {
            x->bound = bound;
            best_value = value_weight;
            best_limited = limited_weight;
        }
        if (tli_choice_mix(x, point.limited, point.value) + terms >=
            tli_choice_mix(x, a.limited, a.value))
            break;
        if (point.limited <= x->limit) b = point;
        else a = point;
    }
    tli_choice_weigh(x, best_value, best_limited);
    tli_choice_fill_inside(x, &x->mixed);
}

// -- choice: lists --
//
// From the first bucket to the last, each row gets the list of labels that may be part of a better choice than
// the best known. A label is left out if another one dominates it, if together with the least limited quantity
// of everything outside the row it exceeds the limit, or if together with the least weighted sum outside it
// exceeds what a better choice can have. If a list is cut to its best labels, the least weighted sum that was
// cut off gives a bound.

#define TLI_CHOICE_MOST_LABELS ((int32_t)1 << 22)
#define TLI_CHOICE_MOST_POOL   ((int32_t)1 << 20)
#define TLI_CHOICE_SHORT_LIST  64

static int tli_choice_is_after(const tli_choice_label *a, const tli_choice_label *b, int by_mixed) {
    if (by_mixed && a->mixed != b->mixed) return a->mixed > b->mixed;
    return a->limited != b->limited ? a->limited > b->limited : a->value > b->value;
}

// Sort by insertion in runs of 8, then by merging; stable. scratch has room for `count` labels.
static void tli_choice_sort_run(tli_choice_label *run, tli_choice_label *scratch, int32_t count, int by_mixed) {
    tli_choice_label *from = run, *to = scratch, *swap;
    int32_t width, start, i;
    for (start = 0; start < count; start += 8)
        for (i = start + 1; i < count && i < start + 8; i++) {
            tli_choice_label label = from[i];
            int32_t at = i;
            for (; at > start && tli_choice_is_after(&from[at - 1], &label, by_mixed); at--)
                from[at] = from[at - 1];
            from[at] = label;
        }
    for (width = 8; width < count; width *= 2) {
        for (start = 0; start < count; start += 2 * width) {
            int32_t middle = start + width < count ? start + width : count;
            int32_t end = middle + width < count ? middle + width : count, left = start, right = middle;
            for (i = start; i < end; i++)
                to[i] = left == middle || (right < end &&
                                           tli_choice_is_after(&from[left], &from[right], by_mixed))
                            ? from[right++]
                            : from[left++];
        }
        swap = from; from = to; to = swap;
    }
    if (from != run) tli_copy(run, from, (size_t)count * sizeof *from);
}

static uint64_t tli_choice_key(const tli_choice_label *label, int by_mixed) {
    return by_mixed ? label->mixed : label->limited;
}

// Sort the pool from `first` on by the weighted sum, or by the limited quantity and then the value: distribute
// labels over ranges of the key, then sort each range. Returns 0 = no memory.
static int tli_choice_sort(tli_choice *x, int32_t first, int by_mixed) {
    tli_choice_label *pool = x->pool + first;
    int32_t count = x->pool_count - first, bits = tli_choice_bits((uint64_t)count), shift, i, at;
    uint64_t low = UINT64_MAX, high = 0;
    if (!tli_grow(x->env, (void **)&x->scratch, &x->scratch_capacity, 0, count, sizeof *x->scratch)) return 0;
    if (count <= 32) { tli_choice_sort_run(pool, x->scratch, count, by_mixed); return 1; }
    if (bits > TLI_CHOICE_RANGE_BITS) bits = TLI_CHOICE_RANGE_BITS;
    for (i = 0; i < count; i++) {
        uint64_t key = tli_choice_key(&pool[i], by_mixed);
        if (key < low) low = key;
        if (key > high) high = key;
    }
    shift = tli_choice_bits(high - low) - bits;
    if (shift < 0) shift = 0;
    tli_zero(x->ranges, ((size_t)1 << bits) * sizeof *x->ranges);
    for (i = 0; i < count; i++) x->ranges[(tli_choice_key(&pool[i], by_mixed) - low) >> shift]++;
    for (i = at = 0; i < 1 << bits; i++) {
        int32_t of_range = (int32_t)x->ranges[i];
        x->ranges[i] = (uint64_t)at;
        at += of_range;
    }
    for (i = 0; i < count; i++)
        x->scratch[x->ranges[(tli_choice_key(&pool[i], by_mixed) - low) >> shift]++] = pool[i];
    tli_copy(pool, x->scratch, (size_t)count * sizeof *pool);
    for (i = at = 0; i < 1 << bits; i++) {
        tli_choice_sort_run(pool + at, x->scratch, (int32_t)x->ranges[i] - at, by_mixed);
        at = (int32_t)x->ranges[i];
    }
    return 1;
}

// Note the weighted sum of a label that is cut off.
static void tli_choice_drop(tli_choice *x, uint64_t mixed) { if (mixed < x->dropped) x->dropped = mixed; }

// Remove labels that are dominated by one in a lower range of the limited quantity. This leaves little more
// than the exact pass after sorting does, and makes that sort much shorter.
static void tli_choice_thin(tli_choice *x, int32_t first) {
    tli_choice_label *pool = x->pool;
    uint64_t low = UINT64_MAX, high = 0, below = UINT64_MAX;
    int32_t bits = tli_choice_bits((uint64_t)(x->pool_count - first)) + 1, shift, kept = first, i;
    if (bits > TLI_CHOICE_RANGE_BITS) bits = TLI_CHOICE_RANGE_BITS;
    for (i = first; i < x->pool_count; i++) {
        if (pool[i].limited < low) low = pool[i].limited;
        if (pool[i].limited > high) high = pool[i].limited;
    }
    shift = tli_choice_bits(high - low) - bits;
    if (shift < 0) shift = 0;
    for (i = 0; i < 1 << bits; i++) x->ranges[i] = UINT64_MAX;
    for (i = first; i < x->pool_count; i++) {
        uint64_t *least = &x->ranges[(pool[i].limited - low) >> shift];
        if (pool[i].value < *least) *least = pool[i].value;
    }
    for (i = 0; i < 1 << bits; i++) {
        uint64_t least = x->ranges[i];
        x->ranges[i] = below;
        if (least < below) below = least;
    }
    for (i = first; i < x->pool_count; i++)
        if (pool[i].value < x->ranges[(pool[i].limited - low) >> shift]) pool[kept++] = pool[i];
    x->pool_count = kept;
}

// Reduce the pool from `first` on to its undominated labels, sorted by the weighted sum and cut to the length
// of a list. rest: least weighted sum of everything else. Returns 0 = no memory.
static int tli_choice_prune(tli_choice *x, int32_t first, uint64_t rest) {
    tli_choice_label *pool = x->pool;
    uint64_t least = UINT64_MAX;
    int32_t kept = first, i;
    x->work += (uint64_t)(x->pool_count - first);
    if (x->pool_count - first < 2) return 1;
    if (x->pool_count - first > 32) tli_choice_thin(x, first);
    x->work += 8 * (uint64_t)(x->pool_count - first);
    if (!tli_choice_sort(x, first, 0)) return 0;
    for (i = first; i < x->pool_count; i++) {
        if (pool[i].value >= least) continue;
        least = pool[i].value;
        pool[kept++] = pool[i];
    }
    x->pool_count = kept;
    if (!tli_choice_sort(x, first, 1)) return 0;
    if (kept - first > x->most_labels) {
        tli_choice_drop(x, pool[first + x->most_labels].mixed + rest);
        x->pool_count = first + x->most_labels;
    }
    return 1;
}

// Move the pool from `first` on to the end of the labels, as a list. Returns 0 = no memory.
static int tli_choice_save_list(tli_choice *x, int32_t first, int32_t *list, int32_t *count) {
    int32_t added = x->pool_count - first;
    if (x->label_count + added > TLI_CHOICE_MOST_LABELS || (uint64_t)added > x->longest) {
        x->over = 1;
        return 1;
    }
    if (!tli_grow(x->env, (void **)&x->labels, &x->label_capacity, x->label_count,
                  (int64_t)x->label_count + added, sizeof *x->labels)) return 0;
    if (added) tli_copy(x->labels + x->label_count, x->pool + first, (size_t)added * sizeof *x->pool);
    *list = x->label_count;
    *count = added;
    x->label_count += added;
    x->pool_count = first;
    return 1;
}

// The least amounts of everything that joined labels do not contain yet, the cell's own tables included.
typedef struct tli_choice_rest { uint64_t mixed, limited; } tli_choice_rest;

// Join each label of one list with each of another, and add to the pool those that may lead to a better choice.
// Both lists are sorted by weighted sum, so loops end early. Returns 0 = no memory.
static int tli_choice_join(tli_choice *x, int32_t left, int32_t left_count, int32_t right, int32_t right_count,
                           const tli_choice_rest *rest) {
    int64_t most = 4 * (int64_t)x->most_labels;
    int32_t i, k;
    for (i = 0; i < left_count; i++) {
        const tli_choice_label a = x->labels[left + i];
        if (a.mixed + x->labels[right].mixed + rest->mixed > x->most_mixed) break;
        x->work += 2;
        for (k = 0; k < right_count; k++) {
            const tli_choice_label *b = &x->labels[right + k];
            uint64_t mixed = a.mixed + b->mixed;
            tli_choice_label *label;
            if (mixed + rest->mixed > x->most_mixed) break;
            if ((int64_t)(i + 1) * (k + 1) > most) { tli_choice_drop(x, mixed + rest->mixed); break; }
            x->work++;
            if (a.limited + b->limited + rest->limited > x->limit) continue;
            if (!tli_grow(x->env, (void **)&x->pool, &x->pool_capacity, x->pool_count,
                          (int64_t)x->pool_count + 1, sizeof *x->pool)) return 0;
            label = &x->pool[x->pool_count++];
            label->limited = a.limited + b->limited;
            label->value = a.value + b->value;
            label->mixed = mixed;
            label->left = (uint32_t)(left + i);
            label->right = (uint32_t)(right + k);
        }
        if (x->pool_count > TLI_CHOICE_MOST_POOL || tli_choice_is_over(x)) { x->over = 1; return 1; }
        if (i + 1 >= most && i + 1 < left_count) {
            tli_choice_drop(x, x->labels[left + i + 1].mixed + x->labels[right].mixed + rest->mixed);
            break;
        }
    }
    return 1;
}

// Add up what a cell has besides its lists: the cost of its tables, and the rest. Returns 0 if the cell is
// forbidden, or one of its lists is empty.
static int tli_choice_open_cell(const tli_choice *x, const tli_choice_bucket *bucket, int32_t row,
                                int32_t state, uint64_t *cost, tli_choice_rest *rest) {
    const tli_choice_part *parts = x->parts + bucket->first_part;
    int32_t i;
    *cost = 0;
    rest->mixed = x->mixed.outside[row];
    rest->limited = x->limited.outside[row];
    for (i = 0; i < bucket->part_count; i++) {
        int32_t at = x->at[i] + state * x->strides[parts[i].first_stride];
        if (parts[i].source >= 0) {
            if (x->cells[at] >= TLI_CHOICE_INFINITE) return 0;
            *cost += x->cells[at];
            rest->mixed += x->mixed.cells[at];
            rest->limited += x->limited.cells[at];
        } else {
            if (!x->row_labels[at]) return 0;
            rest->mixed += x->mixed.inside[at];
            rest->limited += x->limited.inside[at];
        }
        if (rest->mixed >= TLI_CHOICE_INFINITE || rest->limited >= TLI_CHOICE_INFINITE) return 0;
    }
    return 1;
}

// Add the labels of one state in one row to the pool. Returns 0 = no memory.
static int tli_choice_fill_cell(tli_choice *x, const tli_choice_bucket *bucket, int32_t row, int32_t state) {
    const tli_choice_part *parts = x->parts + bucket->first_part;
    int32_t list = 0, count = 1, first = x->pool_count, i;
    uint64_t cost, mixed = 0;
    tli_choice_rest rest;
    x->work += (uint64_t)(2 + bucket->part_count);
    if (!tli_choice_open_cell(x, bucket, row, state, &cost, &rest)) return 1;
    if (bucket->variable >= 0) {
        const tli_choice_state *s = &tli_choice_states_of(x, bucket->variable)[state];
        list = (int32_t)s->first_leaf;
        count = (int32_t)s->leaf_count;
    }
    for (i = 0; i < bucket->part_count; i++) {
        int32_t at = x->at[i] + state * x->strides[parts[i].first_stride];
        if (parts[i].source >= 0) { mixed += x->mixed.cells[at]; continue; }
        if (x->pool_count > first) {
            if (!tli_choice_prune(x, first, rest.mixed) ||
                !tli_choice_save_list(x, first, &list, &count))
                return 0;
        }
        if (x->over) return 1;
        rest.mixed -= x->mixed.inside[at];
        rest.limited -= x->limited.inside[at];
        if (!tli_choice_join(x, list, count, x->first_label[at], x->row_labels[at], &rest)) return 0;
        if (x->over || x->pool_count == first) return 1;
    }
    if (x->pool_count == first && !tli_choice_join(x, list, count, 0, 1, &rest)) return 0;
    for (i = first; i < x->pool_count; i++) {
        x->pool[i].mixed += mixed;
        if (x->swap) x->pool[i].limited += cost;
        else x->pool[i].value += cost;
    }
    return 1;
}

// Sort the labels of each state by weighted sum.
static void tli_choice_sort_leaves(tli_choice *x) {
    int32_t i;
    for (i = 0; i < x->state_count; i++) {
        tli_choice_label *leaves = x->labels + x->states[i].first_leaf;
        uint32_t k, at;
        for (k = 1; k < x->states[i].leaf_count; k++) {
            tli_choice_label leaf = leaves[k];
            for (at = k; at && leaves[at - 1].mixed > leaf.mixed; at--) leaves[at] = leaves[at - 1];
            leaves[at] = leaf;
        }
    }
}

// Make the lists of all rows. Returns 0 = no memory. If x->over is set, the lists were abandoned.
static int tli_choice_fill_lists(tli_choice *x) {
    tli_choice_row row;
    int32_t i, k, s;
    x->label_count = x->leaf_count;
    x->pool_count = x->over = 0;
    x->dropped = UINT64_MAX;
    tli_choice_sort_leaves(x);
    for (i = 0; i < x->bucket_count; i++) {
        const tli_choice_bucket *bucket = &x->buckets[i];
        tli_choice_first_row(x, bucket, &row);
        for (k = 0; k < bucket->row_count; k++) {
            uint64_t rest = x->mixed.outside[row.row];
            x->row_labels[row.row] = 0;
            for (s = 0; s < tli_choice_bucket_states(x, bucket); s++) {
                if (x->mixed.inside[row.row] + rest > x->most_mixed) break;
                if (!tli_choice_fill_cell(x, bucket, row.row, s)) return 0;
                if (x->over || tli_choice_is_over(x)) { x->over = 1; return 1; }
            }
            if (!tli_choice_prune(x, 0, rest) ||
                !tli_choice_save_list(x, 0, &x->first_label[row.row], &x->row_labels[row.row])) return 0;
            if (x->over) return 1;
            tli_choice_next_row(x, bucket, &row);
        }
    }
    return 1;
}

// Recover the schemes of a label. Returns 0 = no memory.
static int tli_choice_read_label(tli_choice *x, uint32_t label) {
    uint64_t most = 2 * ((uint64_t)x->bucket_count + (uint64_t)x->part_count) + 8;
    uint32_t *stack = (uint32_t *)tli_alloc_array(x->env, most, sizeof *stack);
    int32_t count = 0;
    if (!stack) return 0;
    stack[count++] = label;
    while (count) {
        const tli_choice_label *l = &x->labels[stack[--count]];
        if (l->left != TLI_CHOICE_NONE) {
            stack[count++] = l->left;
            stack[count++] = l->right;
        } else if (l->right != TLI_CHOICE_NONE) {
            x->schemes[l->right / TLI_CHOICE_MOST_SCHEMES] = (uint8_t)(l->right % TLI_CHOICE_MOST_SCHEMES);
        }
    }
    tli_release(x->env, stack);
    return 1;
}

// Keep the best choice of the last row's list. Returns 0 = no memory.
static int tli_choice_read_lists(tli_choice *x) {
    int32_t root = (int32_t)x->row_count - 1, best = x->first_label[root], i;
    for (i = best; i < x->first_label[root] + x->row_labels[root]; i++)
        if (x->labels[i].value < x->labels[best].value) best = i;
    if (!x->row_labels[root]) return 1;
    if (!tli_choice_read_label(x, (uint32_t)best)) return 0;
    tli_choice_keep(x);
    return 1;
}

// Close the gap between best value and bound. Short lists come first: they find good choices. Then lists of
// everything that costs little more than the bound: they grow fast with this window, so the window grows in
// steps until the best choice lies in it. Returns 0 = no memory.
static int tli_choice_improve(tli_choice *x) {
    uint64_t base = x->bound, window = 0, before = 0, target, bound;
    tli_choice_fill_outside(x, &x->mixed);
    tli_choice_fill_outside(x, &x->limited);
    x->dropped = 0;
    x->most_labels = TLI_CHOICE_SHORT_LIST / 8;
    while (x->best_value > x->bound && x->most_labels <= x->label_limit && !tli_choice_is_over(x)) {
        if (x->dropped == UINT64_MAX) {
            window += window + 1;
            x->most_labels *= 2;
        } else if (x->best_value != before) {
            window = (x->best_value - base) / 6;
        }
        before = x->best_value;
        target = before - 1;
        if (base + window < x->bound) window = x->bound - base;
        if (x->most_labels > TLI_CHOICE_SHORT_LIST && target - base > window) target = base + window;
        x->most_mixed = tli_choice_most_mixed(x, target);
        if (!tli_choice_fill_lists(x)) return 0;
        if (x->over) break;
        if (!tli_choice_read_lists(x)) return 0;
        bound = target + 1;
        if (x->dropped != UINT64_MAX) {
            if (tli_choice_find_bound(x, x->dropped) < bound) bound = tli_choice_find_bound(x, x->dropped);
            x->most_labels *= 8;
        }
        if (bound > x->bound) x->bound = bound;
        if (x->bound > x->best_value) x->bound = x->best_value;
    }
    return 1;
}

// -- choice: init and free --

static void tli_choice_free(tli_choice *x) {
    void *all[27];
    size_t i, count = 0;
    all[count++] = x->variables;   all[count++] = x->states;      all[count++] = x->tables;
    all[count++] = x->cells;       all[count++] = x->labels;      all[count++] = x->buckets;
    all[count++] = x->parts;       all[count++] = x->strides;     all[count++] = x->scopes;
    all[count++] = x->marks;       all[count++] = x->readers;     all[count++] = x->at;
    all[count++] = x->picks;       all[count++] = x->schemes;     all[count++] = x->first_label;
    all[count++] = x->row_labels;  all[count++] = x->pool;        all[count++] = x->scratch;
    all[count++] = x->mixed.states;   all[count++] = x->mixed.cells;   all[count++] = x->mixed.inside;
    all[count++] = x->mixed.outside;  all[count++] = x->limited.states; all[count++] = x->limited.cells;
    all[count++] = x->limited.inside; all[count++] = x->limited.outside; all[count++] = x->ranges;
    for (i = 0; i < count; i++) tli_release(x->env, all[i]);
}

static void tli_choice_init(tli_choice *x, tl_env *env, const tli_choice_desc *desc, const uint16_t *allowed,
                            uint8_t *best) {
    uint64_t cost, loss;
    tli_zero(x, sizeof *x);
    tli_choice_add_all_most(desc, &cost, &loss);
    x->env = env;
    x->desc = desc;
    x->allowed = allowed;
    x->format_count = tli_choice_format_count(desc);
    x->swap = desc->least_loss;
    x->limit = x->swap ? desc->cost_limit : desc->loss_limit;
    x->value_sum = x->swap ? loss : cost;
    x->limited_sum = x->swap ? cost : loss;
    x->work_limit = desc->work_limit ? desc->work_limit : TLI_CHOICE_WORK;
    x->most_cells = x->work_limit / 64;
    if (x->most_cells > (uint64_t)1 << 22) x->most_cells = (uint64_t)1 << 22;
    if (x->most_cells < 4096) x->most_cells = 4096;
    x->longest = UINT64_MAX;
    x->label_limit = (int32_t)1 << 22;
    x->mixed_bits = 60;
    x->penalty = TLI_CHOICE_INFINITE;
    x->best = best;
}

// -- choice: one limit, by lists --

// Solve over a decomposition.
static tl_result tli_choice_solve_decomposed(tli_choice *x) {
    tli_choice_point a, b;
    uint64_t least;
    x->method = TLI_CHOICE_BOUND;
    if (x->value_hint | x->limited_hint) {
        tli_choice_find_point(x, x->value_hint, x->limited_hint, &least);
        x->bound = tli_choice_find_bound(x, least);
        if (x->found && x->bound >= x->best_value) return TL_OK;
    }
    tli_choice_weigh_limited(x);
    least = tli_choice_fill_inside(x, &x->limited);
    x->nearest = least >= TLI_CHOICE_INFINITE ? TL_UNLIMITED : least;
    if (least >= TLI_CHOICE_INFINITE || least > x->limit) return TL_ERROR_INFEASIBLE;
    tli_choice_read_picks(x, &x->limited);
    tli_choice_read_schemes(x, 1);
    b = tli_choice_keep(x);
    a = tli_choice_find_point(x, 1, 0, &least);
    if (tli_choice_find_bound(x, least) > x->bound) x->bound = tli_choice_find_bound(x, least);
    if (a.limited <= x->limit) return TL_OK;
    tli_choice_narrow(x, a, b);
    if (x->bound >= x->best_value) return TL_OK;
    x->method = TLI_CHOICE_ELIMINATION;
    return tli_choice_improve(x) ? TL_OK : TL_ERROR_NO_MEMORY;
}

// Build the model, decompose it and solve it. TL_ERROR_UNSUPPORTED: it is too wide.
static tl_result tli_choice_solve_lists(tli_choice *x) {
    int decomposed = tli_choice_build(x) ? tli_choice_decompose(x) : 0;
    if (!decomposed) return TL_ERROR_NO_MEMORY;
    return decomposed > 0 ? tli_choice_solve_decomposed(x) : TL_ERROR_UNSUPPORTED;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_NO_PRECISION
#endif  // TL_STRATEGY_IMPLEMENTATION

