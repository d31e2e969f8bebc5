//! The store's verbs as others call them, by what they are about. Each one goes to the engine that is open.
