//! The verbs that both engines share: one body each, run on a `Sql` of either kind, inside one transaction.
