/* START HERE          the functions that a program needs first, in the order of use; [n] is the section of each

   Train inside a budget: your kernels and your loop around these
       tl_init_arena            [1]   optional: an env in memory of yours, so that nothing calls malloc
       tl_init_cpu_backend     [10]   the memory that runs work in: malloc, or a block of yours
       tl_init_op_run          [12]   a list of operations and a budget: checked, timed, planned, ready
       tl_write_tensor         [12]   inputs of the next step
       tl_run_plan             [12]   one training step: all forwards, recomputation, backwards
       tl_read_tensor          [12]   results of the step
       tl_measure_run          [12]   bytes and calls, planned and measured
       tl_save_run             [12]   and tl_load_run: go on later with the same bits
       tl_free_run             [12]   then tl_free_cpu_backend

   When something is refused
       tl_explain_error         [1]   the sentence; env.error has it, too, and numbers
       tl_find_least_budget     [1]   the bytes that would do

   A plan alone: for an executor of your own, a tool, a table in flash
       tl_init_graph            [3]   or tl_read_graph, tl_parse_graph: a .tlg file, a text
       tl_add_input             [3]   then layers by their shapes, tl_add_conv2d and so on, or
       tl_add_node              [3]   any operation, with its bytes, costs and what its backward reads
       tl_add_loss              [3]   where backwards begin
       tl_plan_remat            [6]   the cheapest plan within the budget, and a lower bound of its cost
       tl_explain_plan          [5]   what it does, in plain text
       tl_simulate_plan         [5]   its peak, its cost and whether it is valid, counted again
       tl_init_run             [12]   carry it out with a kernel for each op
       tl_write_table           [5]   or write it as a C table that needs no planner
       tl_free_plan             [5]   then tl_free_graph
*/

