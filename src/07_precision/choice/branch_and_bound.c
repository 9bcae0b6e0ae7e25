#if defined(TL_STRATEGY_IMPLEMENTATION) && !defined(TL_STRATEGY_IMPLEMENTATION_DONE)
#ifndef TL_NO_PRECISION
#ifndef TL_NO_PLANNERS

// -- choice: too wide for lists: the bound --
//
// This part solves graphs whose tree decomposition has too many cells for lists: a lower bound from chains of
// tables, choices by rounding and local search, then branch and bound, which fixes enough nodes for the lists
// of the part above to solve the rest.
//
// Here all tables are of one or two variables. They form chains along an order of the variables, each table in
// one chain, and the sums of a variable's states are divided among the chains that contain it. However they are
// divided, the sum of the least costs of all chains is a lower bound of the whole. To raise the bound, sweep
// over the variables back and forth; each variable divides its sums so that all of its chains agree on the cost
// of its states (Kolmogorov, Convergent Tree-Reweighted Message Passing for Energy Minimization, 2006). All
// sums are integers, so no part of the bound is lost by rounding.
//
// Chains and residual networks are solved by lists; networks that concatenate everything before a layer
// (DenseNet, U-Net++, HRNet) come here. What each part is worth, on 144 choices for such networks: without
// branch and bound 41 proofs are lost and 37 choices cost more; without the search for weights 41 and 72,
// without removing states 30 and 7, without lists in parts 39 and 3, without dividing 10 and 4, without large
// neighbourhoods 0 and 13, without repair 3 and 11.

// A variable in one of its chains.
typedef struct tli_choice_slot {
    int32_t variable, first;          // its [state_count] numbers start at `first`
    int32_t in_table, before;         // table to and slot of the variable before it in the chain; -1 = none
    int32_t out_table, after;         // the same for the variable after it
} tli_choice_slot;

typedef struct tli_choice_dual {
    tli_choice      *x;
    tli_choice_slot *all_slots; int32_t slot_count;
    int32_t     *first_slot;          // [variable_count + 1]
    int32_t     *ranks, *order;       // [variable_count] position of a variable, variable at a position
    int64_t     *shares, *left, *right;   // per slot and state: its share of the variable's sums, least sum of
                                      // the chain before it, least sum of the chain after it
    uint64_t     sweep_work;
} tli_choice_dual;

static void tli_choice_free_dual(tli_choice_dual *d) {
    tli_release(d->x->env, d->all_slots);
    tli_release(d->x->env, d->first_slot);
    tli_release(d->x->env, d->ranks);
    tli_release(d->x->env, d->order);
    tli_release(d->x->env, d->shares);
    tli_release(d->x->env, d->left);
    tli_release(d->x->env, d->right);
}

// Order the variables: nodes as listed, the set variables of a net after its producer (a stable counting sort).
static int tli_choice_rank_variables(tli_choice_dual *d) {
    tli_choice *x = d->x;
    int32_t nodes = x->desc->node_count, i, at = 0;
    int32_t *next = (int32_t *)tli_alloc_array(x->env, (uint64_t)nodes + 1, sizeof *next);
    if (!next) return 0;
    for (i = 0; i < x->variable_count; i++) next[(i < nodes ? i : x->variables[i].owner) + 1]++;
    for (i = 0; i < nodes; i++) next[i + 1] += next[i];
    for (i = 0; i < x->variable_count; i++) {
        at = next[i < nodes ? i : x->variables[i].owner]++;
        d->ranks[i] = at;
        d->order[at] = i;
    }
    tli_release(x->env, next);
    return 1;
}

// Make the chains: the k-th table that leads into a variable and the k-th that leads out share a slot. Returns
// 0 = no memory.
static int tli_choice_add_slots(tli_choice_dual *d) {
    tli_choice *x = d->x;
    int32_t *ins = (int32_t *)tli_alloc_array(x->env, (uint64_t)x->variable_count, sizeof *ins);
    int32_t *outs = (int32_t *)tli_alloc_array(x->env, (uint64_t)x->variable_count, sizeof *outs);
    int32_t i, k, count = 0;
    if (!ins || !outs) { tli_release(x->env, ins); tli_release(x->env, outs); return 0; }
    for (i = 0; i < x->table_count; i++) {
        const int32_t *scope = x->tables[i].scope;
        int32_t up = x->tables[i].scope_count == 2 && d->ranks[scope[0]] > d->ranks[scope[1]];
        if (x->tables[i].scope_count != 2) continue;
        outs[scope[up]]++;
        ins[scope[!up]]++;
        d->sweep_work += 2 * (uint64_t)x->tables[i].cell_count;
    }
    for (i = 0; i < x->variable_count; i++) {
        int32_t most = ins[i] > outs[i] ? ins[i] : outs[i];
        d->first_slot[i] = d->slot_count;
        d->slot_count += most ? most : 1;
        ins[i] = outs[i] = 0;
    }
    d->first_slot[x->variable_count] = d->slot_count;
    d->all_slots = (tli_choice_slot *)tli_alloc_array(x->env, (uint64_t)d->slot_count, sizeof *d->all_slots);
    for (i = 0; d->all_slots && i < x->variable_count; i++)
        for (k = d->first_slot[i]; k < d->first_slot[i + 1]; k++) {
            d->all_slots[k].variable = i;
            d->all_slots[k].first = count;
            d->all_slots[k].in_table = d->all_slots[k].before = -1;
            d->all_slots[k].out_table = d->all_slots[k].after = -1;
            count += x->variables[i].state_count;
        }
    for (i = 0; d->all_slots && i < x->table_count; i++) {
        const int32_t *scope = x->tables[i].scope;
        int32_t up = x->tables[i].scope_count == 2 && d->ranks[scope[0]] > d->ranks[scope[1]], a, b;
        if (x->tables[i].scope_count != 2) continue;
        a = d->first_slot[scope[up]] + outs[scope[up]]++;
        b = d->first_slot[scope[!up]] + ins[scope[!up]]++;
        d->all_slots[a].out_table = d->all_slots[b].in_table = i;
        d->all_slots[a].after = b;
        d->all_slots[b].before = a;
    }
    tli_release(x->env, ins);
    tli_release(x->env, outs);
    d->shares = (int64_t *)tli_alloc_array(x->env, (uint64_t)count, sizeof *d->shares);
    d->left = (int64_t *)tli_alloc_array(x->env, (uint64_t)count, sizeof *d->left);
    d->right = (int64_t *)tli_alloc_array(x->env, (uint64_t)count, sizeof *d->right);
    d->sweep_work += 4 * (uint64_t)count;
    return d->all_slots && d->shares && d->left && d->right;
}

// Set up the chains. Returns 0 = no memory. Weighted sums get fewer bits, so that forbidden conversions can
// have a finite penalty and no sum overflows.
static int tli_choice_init_dual(tli_choice_dual *d, tli_choice *x) {
    tli_zero(d, sizeof *d);
    d->x = x;
    d->first_slot = (int32_t *)tli_alloc_array(x->env, (uint64_t)x->variable_count + 1, sizeof *d->first_slot);
    d->ranks = (int32_t *)tli_alloc_array(x->env, (uint64_t)x->variable_count, sizeof *d->ranks);
    d->order = (int32_t *)tli_alloc_array(x->env, (uint64_t)x->variable_count, sizeof *d->order);
    x->mixed_bits = 58 - tli_choice_bits((uint64_t)x->variable_count + (uint64_t)x->table_count);
    x->penalty = (uint64_t)1 << (x->mixed_bits + 1);
    return d->first_slot && d->ranks && d->order && tli_choice_rank_variables(d) && tli_choice_add_slots(d);
}

// Divide the sums of each variable evenly among its slots; tables of one variable count in its first slot.
static void tli_choice_share_out(tli_choice_dual *d) {
    const tli_choice *x = d->x;
    int32_t i, k, s;
    for (i = 0; i < x->variable_count; i++) {
        int32_t count = d->first_slot[i + 1] - d->first_slot[i];
        for (s = 0; s < x->variables[i].state_count; s++) {
            int64_t sum = (int64_t)x->mixed.states[x->variables[i].first_state + s];
            for (k = 0; k < count; k++) {
                int32_t at = d->all_slots[d->first_slot[i] + k].first + s;
                d->shares[at] = sum / count + (k < sum % count);
                d->left[at] = d->right[at] = 0;
            }
        }
    }
    for (i = 0; i < x->table_count; i++) {
        const uint64_t *cells = x->mixed.cells + x->tables[i].first_cell;
        const tli_choice_slot *slot = &d->all_slots[d->first_slot[x->tables[i].scope[0]]];
        if (x->tables[i].scope_count != 1) continue;
        for (s = 0; s < x->tables[i].cell_count; s++)
            d->shares[slot->first + s] += (int64_t)cells[s];
    }
}

// For each state of slot `to`, the least sum of the table and the part of the chain that ends in `from`.
static void tli_choice_send(const tli_choice_dual *d, int32_t table, const tli_choice_slot *from,
                            const int64_t *side, const tli_choice_slot *to, int64_t *result) {
    const tli_choice *x = d->x;
    const uint64_t *cells = x->mixed.cells + x->tables[table].first_cell;
    int32_t inner = x->variables[x->tables[table].scope[0]].state_count, a, b;
    int32_t is_first = x->tables[table].scope[0] == from->variable;
    int32_t from_step = is_first ? 1 : inner, to_step = is_first ? inner : 1;
    int32_t from_count = x->variables[from->variable].state_count;
    int32_t to_count = x->variables[to->variable].state_count;
    const int64_t *own = d->shares + from->first;
    for (b = 0; b < to_count; b++) {
        int64_t least = INT64_MAX;
        for (a = 0; a < from_count; a++) {
            int64_t sum = side[from->first + a] + own[a] + (int64_t)cells[a * from_step + b * to_step];
            if (sum < least) least = sum;
        }
        result[to->first + b] = least;
    }
}

// Divide the sums of a variable so that each of its chains has the same least sum for each state.
static void tli_choice_average(tli_choice_dual *d, int32_t variable) {
    int32_t first = d->first_slot[variable], count = d->first_slot[variable + 1] - first, s, k;
    if (count < 2) return;
    for (s = 0; s < d->x->variables[variable].state_count; s++) {
        int64_t sum = 0, part, rest;
        for (k = 0; k < count; k++) {
            int32_t at = d->all_slots[first + k].first + s;
            sum += d->shares[at] + d->left[at] + d->right[at];
        }
        part = sum / count;
        rest = sum % count;
        if (rest < 0) { rest += count; part--; }
        for (k = 0; k < count; k++) {
            int32_t at = d->all_slots[first + k].first + s;
            d->shares[at] = part + (k < rest) - d->left[at] - d->right[at];
        }
    }
}

// Pick the state of a variable that is best with the states already picked for the variables before it.
static void tli_choice_pick(tli_choice_dual *d, int32_t variable) {
    tli_choice *x = d->x;
    int64_t least = INT64_MAX;
    int32_t s, k;
    for (s = 0; s < x->variables[variable].state_count; s++) {
        int64_t sum = 0;
        for (k = d->first_slot[variable]; k < d->first_slot[variable + 1]; k++) {
            const tli_choice_slot *slot = &d->all_slots[k];
            sum += d->shares[slot->first + s] + d->right[slot->first + s];
            if (slot->before >= 0) {
                const tli_choice_table *table = &x->tables[slot->in_table];
                int32_t before = x->picks[d->all_slots[slot->before].variable];
                int32_t inner = x->variables[table->scope[0]].state_count;
                int32_t cell = table->scope[0] == variable ? s + before * inner : before + s * inner;
                sum += (int64_t)x->mixed.cells[table->first_cell + cell];
            }
        }
        if (sum >= least) continue;
        least = sum;
        x->picks[variable] = (uint8_t)s;
    }
}

// Sweep back and forth once. Returns the bound of the weighted sum and leaves a choice in picks.
static uint64_t tli_choice_sweep(tli_choice_dual *d) {
    tli_choice *x = d->x;
    int64_t bound = 0;
    int32_t i, k, s;
    for (i = x->variable_count; i-- > 0;) {
        int32_t variable = d->order[i];
        for (k = d->first_slot[variable]; k < d->first_slot[variable + 1]; k++)
            if (d->all_slots[k].after >= 0)
                tli_choice_send(d, d->all_slots[k].out_table, &d->all_slots[d->all_slots[k].after], d->right,
                                &d->all_slots[k], d->right);
        tli_choice_average(d, variable);
    }
    for (i = 0; i < x->variable_count; i++) {
        int32_t variable = d->order[i];
        for (k = d->first_slot[variable]; k < d->first_slot[variable + 1]; k++)
            if (d->all_slots[k].before >= 0)
                tli_choice_send(d, d->all_slots[k].in_table, &d->all_slots[d->all_slots[k].before], d->left,
                                &d->all_slots[k], d->left);
        tli_choice_pick(d, variable);
        tli_choice_average(d, variable);
        for (k = d->first_slot[variable]; k < d->first_slot[variable + 1]; k++) {
            int64_t least = INT64_MAX;
            if (d->all_slots[k].after >= 0) continue;
            for (s = d->all_slots[k].first; s < d->all_slots[k].first + x->variables[variable].state_count; s++)
                if (d->left[s] + d->shares[s] < least) least = d->left[s] + d->shares[s];
            bound += least;
        }
    }
    x->work += d->sweep_work;
    return bound > 0 ? (uint64_t)bound : 0;
}

// -- choice: too wide for lists: better choices --

// A choice with the number of readers of each net in each format, so that changing one node can be priced from
// the nets of that node.
typedef struct tli_choice_local {
    tli_choice   *x;
    int32_t  *counts;                 // [net_count x format_count] readers other than the producer
    int32_t  *first_use, *uses;       // nets of each node: 2 net + (1 = as producer)
    uint64_t  cost, loss;
} tli_choice_local;

// The effect of changing the scheme of one node.
typedef struct tli_choice_change {
    int64_t broken, cost, loss;       // broken: number of forbidden conversions
} tli_choice_change;

static void tli_choice_free_local(tli_choice_local *l) {
    tli_release(l->x->env, l->counts);
    tli_release(l->x->env, l->first_use);
    tli_release(l->x->env, l->uses);
}

// Set up the nets of each node, each net once; a producer that reads its own net is listed as producer only.
// Returns 0 = no memory.
static int tli_choice_init_local(tli_choice_local *l, tli_choice *x) {
    const tli_choice_desc *desc = x->desc;
    uint64_t all = 0, counts = (uint64_t)desc->net_count * (uint64_t)x->format_count;
    int32_t n, i, pass, node;
    tli_zero(l, sizeof *l);
    l->x = x;
    for (n = 0; n < desc->net_count; n++) all += 1 + (uint64_t)desc->nets[n].reader_count;
    l->counts = (int32_t *)tli_alloc_array(x->env, counts, sizeof *l->counts);
    l->first_use = (int32_t *)tli_alloc_array(x->env, (uint64_t)desc->node_count + 2, sizeof *l->first_use);
    l->uses = all < INT32_MAX ? (int32_t *)tli_alloc_array(x->env, all, sizeof *l->uses) : NULL;
    if (!l->counts || !l->first_use || !l->uses) return 0;
    for (pass = 0; pass < 2; pass++) {
        for (n = 0; n < desc->net_count; n++) {
            x->mark++;
            for (i = -1; i < desc->nets[n].reader_count; i++) {
                node = i < 0 ? desc->nets[n].producer : desc->nets[n].readers[i];
                if (x->marks[node] == x->mark) continue;
                x->marks[node] = x->mark;
                if (pass) l->uses[l->first_use[node + 1]++] = 2 * n + (i < 0);
                else l->first_use[node + 2]++;
            }
        }
        for (node = 0; !pass && node <= desc->node_count; node++) l->first_use[node + 1] += l->first_use[node];
    }
    return 1;
}

static int32_t *tli_choice_counts(const tli_choice_local *l, int32_t net) {
    return l->counts + (size_t)net * (size_t)l->x->format_count;
}

static int32_t tli_choice_node_format(const tli_choice *x, int32_t node) {
    return tli_choice_format(x->desc, x->schemes[node]);
}

// Start from the schemes at hand.
static void tli_choice_start_local(tli_choice_local *l) {
    tli_choice *x = l->x;
    int32_t i, k;
    tli_zero(l->counts, (size_t)x->desc->net_count * (size_t)x->format_count * sizeof *l->counts);
    l->cost = l->loss = 0;
    for (i = 0; i < x->desc->node_count; i++) {
        size_t at = (size_t)i * (size_t)x->desc->scheme_count + x->schemes[i];
        l->cost += x->desc->costs[at];
        l->loss += x->desc->losses[at];
        for (k = l->first_use[i]; k < l->first_use[i + 1]; k++)
            if (!(l->uses[k] & 1)) tli_choice_counts(l, l->uses[k] / 2)[tli_choice_node_format(x, i)]++;
    }
    for (i = 0; i < x->desc->net_count; i++) {
        const tli_choice_net *net = &x->desc->nets[i];
        int32_t from = tli_choice_node_format(x, net->producer);
        uint64_t price;
        for (k = 0; k < x->format_count; k++) {
            if (k == from || !tli_choice_counts(l, i)[k]) continue;
            price = net->costs[(size_t)from * (size_t)x->format_count + (size_t)k];
            if (price != TL_FORBIDDEN) l->cost += price;
        }
    }
}

static void tli_choice_add_price(const tli_choice_local *l, int32_t net, int32_t from, int32_t to, int sign,
                                 tli_choice_change *c) {
    uint64_t price;
    if (from == to) return;
    price = l->x->desc->nets[net].costs[(size_t)from * (size_t)l->x->format_count + (size_t)to];
    if (price == TL_FORBIDDEN) c->broken += sign;
    else c->cost += sign * (int64_t)price;
}

static tli_choice_change tli_choice_price_change(const tli_choice_local *l, int32_t node, int32_t scheme) {
    tli_choice *x = l->x;
    size_t row = (size_t)node * (size_t)x->desc->scheme_count;
    int32_t was = tli_choice_node_format(x, node), is = tli_choice_format(x->desc, scheme), i, f;
    tli_choice_change c;
    c.broken = 0;
    c.cost = (int64_t)x->desc->costs[row + (size_t)scheme] - (int64_t)x->desc->costs[row + x->schemes[node]];
    c.loss = (int64_t)x->desc->losses[row + (size_t)scheme] - (int64_t)x->desc->losses[row + x->schemes[node]];
    x->work += 4;
    if (was == is) return c;
    for (i = l->first_use[node]; i < l->first_use[node + 1]; i++) {
        int32_t net = l->uses[i] / 2, from = tli_choice_node_format(x, x->desc->nets[net].producer);
        const int32_t *counts = tli_choice_counts(l, net);
        x->work += 2;
        if (l->uses[i] & 1) {
            for (f = 0; f < x->format_count; f++) {
                if (!counts[f]) continue;
                tli_choice_add_price(l, net, was, f, -1, &c);
                tli_choice_add_price(l, net, is, f, 1, &c);
            }
        } else {
            if (counts[was] == 1) tli_choice_add_price(l, net, from, was, -1, &c);
            if (!counts[is]) tli_choice_add_price(l, net, from, is, 1, &c);
        }
    }
    return c;
}

static void tli_choice_apply_change(tli_choice_local *l, int32_t node, int32_t scheme,
                                    const tli_choice_change *c) {
    int32_t was = tli_choice_node_format(l->x, node), is = tli_choice_format(l->x->desc, scheme), i;
    for (i = l->first_use[node]; was != is && i < l->first_use[node + 1]; i++)
        if (!(l->uses[i] & 1)) {
            tli_choice_counts(l, l->uses[i] / 2)[was]--;
            tli_choice_counts(l, l->uses[i] / 2)[is]++;
        }
    l->x->schemes[node] = (uint8_t)scheme;
    l->cost = (uint64_t)((int64_t)l->cost + c->cost);
    l->loss = (uint64_t)((int64_t)l->loss + c->loss);
}

static int64_t tli_choice_mix_change(const tli_choice *x, const tli_choice_change *c) {
    int64_t value = x->swap ? c->loss : c->cost, limited = x->swap ? c->cost : c->loss;
    uint64_t a = tli_choice_scale((uint64_t)(value < 0 ? -value : value), x->value_weight, x->shift);
    uint64_t b = tli_choice_scale((uint64_t)(limited < 0 ? -limited : limited), x->limited_weight, x->shift);
    return (value < 0 ? -(int64_t)a : (int64_t)a) + (limited < 0 ? -(int64_t)b : (int64_t)b);
}

// Whether a change improves the choice: its weighted sum or, with `within`, its value within the limit. *gain =
// by how much. Fewer forbidden conversions improve any choice, but with `within` their number must not change.
static int tli_choice_is_gain(const tli_choice_local *l, const tli_choice_change *c, int within,
                              int64_t *gain) {
    const tli_choice *x = l->x;
    int64_t limited = x->swap ? c->cost : c->loss;
    if (!within) *gain = -tli_choice_mix_change(x, c);
    else *gain = -(x->swap ? c->loss : c->cost);
    if (c->broken) return c->broken < 0 && !within;
    if (within && limited > 0 && (x->swap ? l->cost : l->loss) + (uint64_t)limited > x->limit) return 0;
    return *gain > 0;
}

// Local search: change one node at a time while that improves the choice.
static void tli_choice_descend(tli_choice_local *l, int within) {
    tli_choice *x = l->x;
    int32_t changed = 1, node, k, sweep;
    for (sweep = 0; changed && sweep < 50 && !tli_choice_is_over(x); sweep++) {
        changed = 0;
        for (node = 0; node < x->desc->node_count; node++) {
            tli_choice_change best = { 0, 0, 0 };
            int32_t best_scheme = -1;
            int64_t best_gain = 0, gain;
            for (k = 0; k < x->desc->scheme_count; k++) {
                tli_choice_change c;
                if (k == x->schemes[node] || !(x->allowed[node] >> k & 1)) continue;
                c = tli_choice_price_change(l, node, k);
                if (!tli_choice_is_gain(l, &c, within, &gain)) continue;
                if (best_scheme >= 0 && c.broken > best.broken) continue;
                if (best_scheme >= 0 && c.broken == best.broken && gain <= best_gain) continue;
                best = c;
                best_scheme = k;
                best_gain = gain;
            }
            if (best_scheme < 0) continue;
            tli_choice_apply_change(l, node, best_scheme, &best);
            changed = 1;
        }
    }
}

// Find the change of a node that costs least value per unit that it reduces the limited quantity by. Returns
// the scheme, -1 = none; *price and *give = both amounts.
static int32_t tli_choice_find_gift(const tli_choice_local *l, int32_t node,
                                    tli_choice_change *best, uint64_t *price, uint64_t *give) {
    const tli_choice *x = l->x;
    int32_t scheme = -1, k;
    for (k = 0; k < x->desc->scheme_count; k++) {
        tli_choice_change c;
        int64_t value, limited;
        if (k == x->schemes[node] || !(x->allowed[node] >> k & 1)) continue;
        c = tli_choice_price_change(l, node, k);
        limited = x->swap ? c.cost : c.loss;
        value = x->swap ? c.loss : c.cost;
        if (c.broken > 0 || limited >= 0) continue;
        if (value < 0) value = 0;
        if (scheme >= 0 && !tli_exact_is_less((uint64_t)value, *give, *price, (uint64_t)-limited)) continue;
        *best = c;
        *price = (uint64_t)value;
        *give = (uint64_t)-limited;
        scheme = k;
    }
    return scheme;
}

// Reduce the limited quantity to the limit by changes of the least price per unit: in each pass all changes
// that are at most an eighth dearer than the best one of the pass before.
static void tli_choice_repair(tli_choice_local *l) {
    const tli_choice *x = l->x;
    uint64_t most_price = 0, most_give = 1;
    while ((x->swap ? l->cost : l->loss) > x->limit && !tli_choice_is_over(l->x)) {
        uint64_t best_price = 0, best_give = 0, price = 0, give = 0;
        int32_t changed = 0, node;
        for (node = 0; node < x->desc->node_count && (x->swap ? l->cost : l->loss) > x->limit; node++) {
            tli_choice_change c = { 0, 0, 0 };
            int32_t scheme = tli_choice_find_gift(l, node, &c, &price, &give);
            if (scheme < 0) continue;
            if (!tli_exact_is_less(most_price, give, price, most_give)) {
                tli_choice_apply_change(l, node, scheme, &c);
                changed = 1;
            } else if (!best_give || tli_exact_is_less(price, best_give, best_price, give)) {
                best_price = price;
                best_give = give;
            }
        }
        if (changed) continue;
        if (!best_give) return;
        most_price = best_price + best_price / 8;
        most_give = best_give;
    }
}

// Turn the picks of a sweep into a choice, improve it, and keep it if it is the best within the limit. repair:
// 1 = reduce it to the limit first. Returns the choice before that.
static tli_choice_point tli_choice_round(tli_choice_local *l, int repair) {
    tli_choice *x = l->x;
    tli_choice_point point;
    tli_choice_read_schemes(x, 0);
    tli_choice_start_local(l);
    tli_choice_descend(l, 0);
    point.value = x->swap ? l->loss : l->cost;
    point.limited = x->swap ? l->cost : l->loss;
    tli_choice_keep(x);
    if (repair) tli_choice_repair(l);
    tli_choice_descend(l, 1);
    tli_choice_keep(x);
    return point;
}

// Init a part: the same graph with fewer allowed schemes, of which only choices better than the best known
// matter.
static void tli_choice_init_part(tli_choice *part, const tli_choice *x, const uint16_t *allowed,
                                 uint64_t work_limit) {
    tli_choice_init(part, x->env, x->desc, allowed, x->best);
    part->found = 1;
    part->best_value = x->best_value;
    part->best_limited = x->best_limited;
    part->work = x->work;
    part->work_limit = work_limit;
}

static void tli_choice_free_part(tli_choice *part, tli_choice *x) {
    x->best_value = part->best_value;
    x->best_limited = part->best_limited;
    x->work = part->work + 64 * (uint64_t)x->desc->node_count;
    tli_choice_free(part);
}

// Large neighbourhood search: fix a random part of the nodes to the best choice and solve for the others
// exactly, again and again. More nodes are fixed after a part that was too wide, fewer after one that was
// not.
static tl_result tli_choice_reoptimise(tli_choice *x, uint64_t work_limit) {
    uint16_t *allowed = (uint16_t *)tli_alloc_array(x->env, (uint64_t)x->desc->node_count, sizeof *allowed);
    tl_random random = { 1 };
    uint64_t fixed = 512, idle = 0;
    tl_result result = allowed ? TL_OK : TL_ERROR_NO_MEMORY;
    int32_t i;
    while (!result && x->work < work_limit && x->best_value > x->bound && idle < 60 && !tli_choice_is_over(x)) {
        uint64_t before = x->best_value;
        tli_choice part;
        for (i = 0; i < x->desc->node_count; i++)
            allowed[i] = (uint16_t)(tl_next_random_below(&random, 1024) < fixed ? 1u << x->best[i]
                                                                                : x->allowed[i]);
        tli_choice_init_part(&part, x, allowed, work_limit);
        part.most_cells = 1 << 15;
        part.label_limit = 64;
        result = tli_choice_solve_lists(&part);
        if (result == TL_ERROR_UNSUPPORTED) fixed += (1024 - fixed) / 16 + 1;
        else if (fixed > 16) fixed -= 8;
        idle = part.best_value < before ? 0 : idle + 1;
        if (result == TL_ERROR_UNSUPPORTED || result == TL_ERROR_INFEASIBLE) result = TL_OK;
        tli_choice_free_part(&part, x);
    }
    tli_release(x->env, allowed);
    return result;
}

// -- choice: too wide for lists: bound and choices together --

// Sweep at one pair of weights. Returns 1 if that raised the bound of the value.
static int tli_choice_raise(tli_choice_dual *d, uint64_t value_weight, uint64_t limited_weight,
                            int32_t sweeps) {
    tli_choice *x = d->x;
    uint64_t most = 0, last = 0, bound;
    int32_t i;
    tli_choice_weigh(x, value_weight, limited_weight);
    tli_choice_share_out(d);
    for (i = 0; i < sweeps; i++) {
        uint64_t least = tli_choice_sweep(d);
        if (least > most) most = least;
        if (tli_choice_is_over(x)) break;
        if (i % 16 == 15) {
            if (most - last < most >> 20) break;
            last = most;
        }
    }
    bound = tli_choice_find_bound(x, most);
    if (bound <= x->bound) return 0;
    x->bound = x->found && bound > x->best_value ? x->best_value : bound;
    return 1;
}

static int32_t tli_choice_sweeps(const tli_choice_dual *d, uint64_t work, int32_t most) {
    uint64_t sweeps = work / d->sweep_work;
    return sweeps > (uint64_t)most ? most : sweeps < 2 ? 2 : (int32_t)sweeps;
}

// Search weights between a choice beyond the limit and one within it, as tli_choice_narrow does.
static void tli_choice_search_weights(tli_choice_dual *d, tli_choice_local *l, tli_choice_point a,
                                      tli_choice_point b, uint64_t work_limit,
                                      uint64_t *value_weight, uint64_t *limited_weight) {
    tli_choice *x = d->x;
    int32_t sweeps = tli_choice_sweeps(d, work_limit > x->work ? (work_limit - x->work) / 32 : 0, 32), i;
    for (i = 0; i < 20 && a.limited > b.limited && b.value > a.value; i++) {
        uint64_t value = a.limited - b.limited, limited = b.value - a.value;
        tli_choice_point point;
        if (x->work >= work_limit || tli_choice_is_over(x)) return;
        if (tli_choice_raise(d, value, limited, sweeps)) {
            *value_weight = value;
            *limited_weight = limited;
        }
        point = tli_choice_round(l, 1);
        if (point.limited <= x->limit) {
            if (point.limited == b.limited && point.value >= b.value) return;
            b = point;
        } else {
            if (point.value <= a.value && point.limited >= a.limited) return;
            a = point;
        }
    }
}

// -- choice: too wide for lists: branch and bound --
//
// A state with which the chains cost at least as much as the best known choice is removed; the rest is often
// narrow enough for lists. Where it is not, a part is opened for each state of one node, and the part with the
// lowest bound is taken next (Land and Doig, An Automatic Method of Solving Discrete Programming Problems,
// 1960).

#define TLI_CHOICE_PART_CELLS  ((uint64_t)1 << 18)
#define TLI_CHOICE_PART_LABELS ((int32_t)1 << 13)
#define TLI_CHOICE_PART_SWEEPS 32

typedef struct tli_choice_tree {
    tli_choice   *x;
    uint64_t  value_weight, limited_weight;           // of the best bound
    uint64_t  share;                                  // of the work, for improving the choice once
    uint64_t  visits;                                 // of parts by chains; the second one polishes
    uint16_t *allowed; int32_t allowed_capacity;      // [count x node_count] schemes of the open parts
    uint64_t *bounds; int32_t bounds_capacity;        // [count] bounds of the open parts
    int32_t   count;
    uint64_t  floor;                                  // least bound of parts that cannot be divided further
    uint16_t *part;                                   // [node_count] schemes of the part that was taken
    uint64_t  bound;                                  // of that part
    int32_t   hub;                                    // the node that makes it too wide, -1 = none
} tli_choice_tree;

// Add t->part to the open parts. Returns 0 = no memory.
static int tli_choice_open_part(tli_choice_tree *t, uint64_t bound) {
    int32_t nodes = t->x->desc->node_count, used = t->count * nodes;
    if (!tli_grow(t->x->env, (void **)&t->allowed, &t->allowed_capacity, used, (int64_t)used + nodes,
                  sizeof *t->allowed)) return 0;
    if (!tli_grow(t->x->env, (void **)&t->bounds, &t->bounds_capacity, t->count, (int64_t)t->count + 1,
                  sizeof *t->bounds)) return 0;
    tli_copy(t->allowed + used, t->part, (size_t)nodes * sizeof *t->part);
    t->bounds[t->count++] = bound;
    return 1;
}

// Take the open part with the lowest bound, among equal ones the latest.
static void tli_choice_take_part(tli_choice_tree *t) {
    size_t nodes = (size_t)t->x->desc->node_count;
    int32_t at = 0, last = t->count - 1, i;
    for (i = 1; i < t->count; i++) if (t->bounds[i] <= t->bounds[at]) at = i;
    t->bound = t->bounds[at];
    tli_copy(t->part, t->allowed + (size_t)at * nodes, nodes * sizeof *t->part);
    if (at < last) {
        t->bounds[at] = t->bounds[last];
        tli_copy(t->allowed + (size_t)at * nodes, t->allowed + (size_t)last * nodes, nodes * sizeof *t->part);
    }
    t->count--;
}

// After a sweep: find for each of [state_count] states how much more the chains cost at least with it than
// without any restriction. Returns the latter, the bound of the weighted sum.
static uint64_t tli_choice_find_excess(tli_choice_dual *d, uint64_t *excess) {
    const tli_choice *x = d->x;
    int64_t bound = 0;
    int32_t i, k, s;
    for (i = x->variable_count; i-- > 0;) {
        int32_t variable = d->order[i], count = x->variables[variable].state_count;
        uint64_t *sums = excess + x->variables[variable].first_state;
        for (s = 0; s < count; s++) sums[s] = 0;
        for (k = d->first_slot[variable]; k < d->first_slot[variable + 1]; k++) {
            const tli_choice_slot *slot = &d->all_slots[k];
            int64_t *right = d->right + slot->first, least = INT64_MAX;
            const int64_t *left = d->left + slot->first, *own = d->shares + slot->first;
            if (slot->after >= 0)
                tli_choice_send(d, slot->out_table, &d->all_slots[slot->after], d->right, slot, d->right);
            for (s = 0; s < count; s++)
                if (left[s] + own[s] + right[s] < least) least = left[s] + own[s] + right[s];
            for (s = 0; s < count; s++) sums[s] += (uint64_t)(left[s] + own[s] + right[s] - least);
            if (slot->before < 0) bound += least;
        }
    }
    return bound > 0 ? (uint64_t)bound : 0;
}

// The schemes of a state, as bits, whose weighted sum plus `rest` is at most `most`.
static uint16_t tli_choice_schemes_within(const tli_choice *x, int32_t state, uint64_t rest, uint64_t most) {
    const tli_choice_label *leaves = x->labels + x->states[state].first_leaf;
    uint16_t schemes = 0;
    uint32_t k;
    for (k = 0; k < x->states[state].leaf_count; k++)
        if (leaves[k].mixed + rest <= most)
            schemes = (uint16_t)(schemes | 1u << leaves[k].right % TLI_CHOICE_MOST_SCHEMES);
    return schemes;
}

// Reduce the part to schemes that a better choice can have. Returns how many states were removed, -1 = all of
// a node.
static int32_t tli_choice_leave_out(tli_choice_tree *t, const tli_choice *y, const uint64_t *excess,
                                    uint64_t bound) {
    uint64_t most = tli_choice_most_mixed(y, y->best_value - 1);
    int32_t count = 0, i, s;
    for (i = 0; i < y->desc->node_count; i++) {
        t->part[i] = 0;
        for (s = 0; s < y->variables[i].state_count; s++) {
            int32_t state = y->variables[i].first_state + s;
            uint64_t rest = bound + excess[state] - y->mixed.states[state];
            uint16_t schemes = tli_choice_schemes_within(y, state, rest, most);
            count += !schemes;
            t->part[i] = (uint16_t)(t->part[i] | schemes);
        }
        if (!t->part[i]) return -1;
    }
    return count;
}

// The node to branch on: the hub that makes the part too wide, else the node whose second best state costs
// most; -1 = none.
static int32_t tli_choice_choose_branch(const tli_choice_tree *t, const tli_choice *y, const uint64_t *excess) {
    uint64_t most = 0;
    int32_t node = -1, i, s;
    if (t->hub >= 0 && y->variables[t->hub].state_count > 1) return t->hub;
    for (i = 0; i < y->desc->node_count; i++) {
        uint64_t best = UINT64_MAX, second = UINT64_MAX;
        for (s = 0; s < y->variables[i].state_count; s++) {
            uint64_t one = excess[y->variables[i].first_state + s];
            if (one < best) { second = best; best = one; }
            else if (one < second) second = one;
        }
        if (second == UINT64_MAX || (node >= 0 && second <= most)) continue;
        node = i;
        most = second;
    }
    return node;
}

// Divide the part: open one part for each state of a node. Returns 0 = no memory.
static int tli_choice_branch(tli_choice_tree *t, const tli_choice *y, const uint64_t *excess, uint64_t bound) {
    int32_t node = tli_choice_choose_branch(t, y, excess), s;
    uint16_t left;
    if (node < 0) {
        if (t->bound < t->floor) t->floor = t->bound;
        return 1;
    }
    left = t->part[node];
    for (s = 0; s < y->variables[node].state_count; s++) {
        int32_t state = y->variables[node].first_state + s;
        uint64_t least = tli_choice_find_bound(y, bound + excess[state]);
        t->part[node] = left & tli_choice_schemes_within(y, state, 0, UINT64_MAX);
        if (!t->part[node] || least >= y->best_value) continue;
        if (!tli_choice_open_part(t, least > t->bound ? least : t->bound)) return 0;
    }
    return 1;
}

// Solve the part by lists. Returns 1 = closed, 0 = too wide or too much work, -1 = no memory.
static int tli_choice_solve_part(tli_choice_tree *t) {
    tli_choice *x = t->x, y;
    tl_result result;
    int closed;
    tli_choice_init_part(&y, x, t->part, x->work_limit);
    y.most_cells = x->most_cells < TLI_CHOICE_PART_CELLS ? x->most_cells : TLI_CHOICE_PART_CELLS;
    y.label_limit = TLI_CHOICE_PART_LABELS;
    y.value_hint = t->value_weight;
    y.limited_hint = t->limited_weight;
    result = tli_choice_solve_lists(&y);
    closed = result == TL_ERROR_INFEASIBLE || (!result && y.bound >= y.best_value);
    if (!result && y.bound > t->bound) t->bound = y.bound;
    t->hub = result == TL_ERROR_UNSUPPORTED ? y.hub : -1;
    tli_choice_free_part(&y, x);
    return result == TL_ERROR_NO_MEMORY ? -1 : closed;
}

// Improve the bound and the choice once, after the first states were removed: sweeps and parts are much shorter
// then. Returns -1 = no memory.
static int tli_choice_polish(tli_choice_tree *t, tli_choice *y, tli_choice_dual *d) {
    tli_choice_local l;
    int ready = tli_choice_init_local(&l, y);
    if (ready) {
        tli_choice_raise(d, t->value_weight, t->limited_weight, tli_choice_sweeps(d, t->share / 2, 300));
        tli_choice_round(&l, 1);
        if (tli_choice_reoptimise(y, y->work + t->share)) ready = 0;
    }
    tli_choice_free_local(&l);
    if (y->bound > t->bound) t->bound = y->bound;
    return ready ? 0 : -1;
}

// Bound the part by chains. Returns 1 = closed or divided, 0 = states were removed or the choice was polished:
// visit it again, -1 = no memory.
static int tli_choice_narrow_part(tli_choice_tree *t, tli_choice *y, tli_choice_dual *d) {
    uint64_t *excess, bound;
    int32_t count;
    int result = 1;
    tli_choice_raise(d, t->value_weight, t->limited_weight, TLI_CHOICE_PART_SWEEPS);
    if (y->bound > t->bound) t->bound = y->bound;
    if (t->bound >= y->best_value) return 1;
    excess = (uint64_t *)tli_alloc_array(y->env, (uint64_t)y->state_count, sizeof *excess);
    if (!excess) return -1;
    bound = tli_choice_find_excess(d, excess);
    count = tli_choice_leave_out(t, y, excess, bound);
    if (count >= 0 && ++t->visits == 2) result = tli_choice_polish(t, y, d);
    else if (count > 0) result = 0;
    else if (!count && !tli_choice_branch(t, y, excess, bound)) result = -1;
    tli_release(y->env, excess);
    return result;
}

static int tli_choice_bound_part(tli_choice_tree *t) {
    tli_choice y;
    tli_choice_dual d;
    int result = -1, ready;
    tli_choice_init_part(&y, t->x, t->part, t->x->work_limit);
    y.pairwise = 1;
    ready = tli_choice_build(&y);
    if (!tli_choice_init_dual(&d, &y)) ready = 0;
    y.picks = (uint8_t *)tli_alloc_array(y.env, (uint64_t)y.variable_count, sizeof *y.picks);
    if (ready && y.picks && tli_choice_add_view(&y, &y.mixed)) result = tli_choice_narrow_part(t, &y, &d);
    tli_choice_free_dual(&d);
    tli_choice_free_part(&y, t->x);
    return result;
}

// Close the part that was taken, divide it, or open it again if the work is spent. Returns 0 = no memory.
static int tli_choice_visit_part(tli_choice_tree *t) {
    tli_choice *x = t->x;
    int closed = t->bound >= x->best_value;
    while (!closed && !tli_choice_is_over(x)) {
        closed = tli_choice_solve_part(t);
        if (!closed && !tli_choice_is_over(x)) closed = tli_choice_bound_part(t);
    }
    return closed ? closed > 0 : tli_choice_open_part(t, t->bound);
}

// Branch and bound, from a known choice and the weights of the best bound. Returns 0 = no memory.
static int tli_choice_search_tree(tli_choice *x, uint64_t value_weight, uint64_t limited_weight,
                                  uint64_t share) {
    tli_choice_tree t;
    int ready;
    tli_zero(&t, sizeof t);
    t.x = x;
    t.value_weight = value_weight;
    t.limited_weight = limited_weight;
    t.share = share;
    t.floor = UINT64_MAX;
    t.part = (uint16_t *)tli_alloc_array(x->env, (uint64_t)x->desc->node_count, sizeof *t.part);
    if (t.part) tli_copy(t.part, x->allowed, (size_t)x->desc->node_count * sizeof *t.part);
    ready = t.part && tli_choice_open_part(&t, x->bound);
    while (ready && t.count && !tli_choice_is_over(x)) {
        tli_choice_take_part(&t);
        if (t.bound < t.floor && t.bound > x->bound) x->bound = t.bound;
        ready = tli_choice_visit_part(&t);
    }
    if (ready) {
        x->bound = x->best_value < t.floor ? x->best_value : t.floor;
        if (t.count) tli_choice_take_part(&t);
        else t.bound = x->bound;
        if (t.bound < x->bound) x->bound = t.bound;
    }
    tli_release(x->env, t.allowed);
    tli_release(x->env, t.bounds);
    tli_release(x->env, t.part);
    return ready;
}

// -- choice: too wide for lists: the search --

typedef struct tli_choice_wide {
    tli_choice      *x;               // built with tables of at most two variables
    tli_choice_dual  dual;
    tli_choice_local local;
    tli_choice_point cheapest;        // the choice at the weights of least value, within the limit or not
    uint64_t         start, share;    // work at the start; a quarter of what remained then
} tli_choice_wide;

static void tli_choice_free_wide(tli_choice_wide *w) {
    tli_choice_free_dual(&w->dual);
    tli_choice_free_local(&w->local);
}

// Set up chains and nets, and look for a first choice, at the weights of least limited quantity, then of least
// value. Returns 0 = no memory; x->found tells whether a choice within the limit was found.
static int tli_choice_begin_wide(tli_choice_wide *w, tli_choice *x) {
    int ready;
    tli_zero(w, sizeof *w);
    w->x = x;
    w->start = x->work;
    w->share = x->work_limit > x->work ? (x->work_limit - x->work) / 4 : 0;
    x->method = TLI_CHOICE_SEARCH;
    x->picks = (uint8_t *)tli_alloc_array(x->env, (uint64_t)x->variable_count, sizeof *x->picks);
    ready = tli_choice_init_dual(&w->dual, x);
    if (!tli_choice_init_local(&w->local, x)) ready = 0;
    if (!ready || !x->picks || !tli_choice_add_view(x, &x->mixed)) return 0;
    tli_choice_raise(&w->dual, 0, 1, tli_choice_sweeps(&w->dual, w->share / 16, 16));
    x->bound = 0;
    tli_choice_round(&w->local, 1);
    tli_choice_raise(&w->dual, 1, 0, tli_choice_sweeps(&w->dual, w->share / 8, 64));
    w->cheapest = tli_choice_round(&w->local, 0);
    return 1;
}

// From a first choice within the limit: search weights, then branch and bound. Returns 0 = no memory.
static int tli_choice_finish_wide(tli_choice_wide *w) {
    tli_choice *x = w->x;
    uint64_t value_weight = 1, limited_weight = 0;
    tli_choice_point within;
    within.value = x->best_value;
    within.limited = x->best_limited;
    if (w->cheapest.limited > x->limit)
        tli_choice_search_weights(&w->dual, &w->local, w->cheapest, within, w->start + 2 * w->share,
                                  &value_weight, &limited_weight);
    return x->best_value <= x->bound || tli_choice_search_tree(x, value_weight, limited_weight, w->share);
}

// If no choice within the limit was found, look for the least limit that can be met, with value and limited
// quantity exchanged.
static tl_result tli_choice_search_least(tli_choice *x) {
    tli_choice_desc least = *x->desc;
    tl_result result = TL_ERROR_NO_MEMORY;
    tli_choice_wide w;
    tli_choice y;
    x->nearest = TL_UNLIMITED;
    if (x->limit >= x->limited_sum) return TL_ERROR_INFEASIBLE;
    least.least_loss = !least.least_loss;
    least.loss_limit = least.cost_limit = TL_UNLIMITED;
    tli_choice_init(&y, x->env, &least, x->allowed, x->best);
    y.pairwise = 1;
    y.work = x->work;
    y.work_limit = x->work + (x->work_limit > x->work ? (x->work_limit - x->work) / 2 : 0);
    if (tli_choice_build(&y)) {
        if (tli_choice_begin_wide(&w, &y) && (!y.found || tli_choice_finish_wide(&w)))
            result = y.found ? TL_OK : TL_ERROR_INFEASIBLE;
        tli_choice_free_wide(&w);
    }
    x->work = y.work;
    if (!result) {
        x->nearest = y.best_value;
        tli_copy(x->schemes, x->best, (size_t)x->desc->node_count);
        tli_choice_keep(x);
        if (!x->found) result = TL_ERROR_INFEASIBLE;
    }
    tli_choice_free(&y);
    return result;
}

// Solve a graph that is too wide for lists. x was built with tables of at most two variables.
static tl_result tli_choice_search(tli_choice *x) {
    tl_result result = TL_ERROR_NO_MEMORY;
    tli_choice_wide w;
    if (tli_choice_begin_wide(&w, x)) {
        result = x->found ? TL_OK : tli_choice_search_least(x);
        if (!result && !tli_choice_finish_wide(&w)) result = TL_ERROR_NO_MEMORY;
    }
    tli_choice_free_wide(&w);
    return result;
}
#endif  // TL_NO_PLANNERS
#endif  // TL_NO_PRECISION
#endif  // TL_STRATEGY_IMPLEMENTATION

