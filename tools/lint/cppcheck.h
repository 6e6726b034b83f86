/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Macros of system headers, which cppcheck doesn't read, where the guess that it makes instead is
 * a wrong one: they are loops or declare something.
 */
#define CAA_CONTAINER(ptr, type) ((type *)(void *)(ptr))
#define cds_hlist_for_each_entry_2(entry, head, member) \
	for ((entry) = CAA_CONTAINER((head)->next, __typeof__(*(entry))); (entry); \
	     (entry) = CAA_CONTAINER((entry)->member.next, __typeof__(*(entry))))
#define cds_hlist_for_each_entry_rcu_2(entry, head, member) cds_hlist_for_each_entry_2(entry, head, member)
#define LIST_HEAD(name, type) struct name { struct type *lh_first; }
#define TAILQ_HEAD(name, type) struct name { struct type *tqh_first, **tqh_last; }
#define STAILQ_HEAD(name, type) struct name { struct type *stqh_first, **stqh_last; }
#define CORDON_FOREACH(var, first, next) for ((var) = (first); (var); (var) = (next))
#define LIST_FOREACH(var, head, field) CORDON_FOREACH(var, (head)->lh_first, (var)->field.le_next)
#define TAILQ_FOREACH(var, head, field) CORDON_FOREACH(var, (head)->tqh_first, (var)->field.tqe_next)
#define STAILQ_FOREACH(var, head, field) CORDON_FOREACH(var, (head)->stqh_first, (var)->field.stqe_next)
