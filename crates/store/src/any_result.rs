//! Operations with the type of their result erased. The engines run most operations as this one type, so that the code
//! that runs them is compiled once and not for each type of result.

use std::any::Any;

use futures_util::future::BoxFuture;

use crate::{ChangeDescription, Result, SqlOperation, SqlOperationWithIds};

/// The result of an operation whose type is erased.
pub(crate) type AnyResult = Box<dyn Any + Send>;

pub(crate) fn erase_type<T: Send + 'static>(operation: SqlOperation<T>) -> SqlOperation<AnyResult> {
    Box::new(move |sql| {
        let running = operation(sql);
        Box::pin(async move { Ok(Box::new(running.await?) as AnyResult) })
    })
}

/// Like `erase_type`, for operations that create ids.
pub(crate) fn erase_type_with_ids<T: Send + 'static>(
    operation: SqlOperationWithIds<T>,
) -> SqlOperationWithIds<AnyResult> {
    Box::new(move |sql, ids| {
        let running = operation(sql, ids);
        Box::pin(async move { Ok(Box::new(running.await?) as AnyResult) })
    })
}

/// Like `erase_type`, for operations that describe their change.
pub(crate) fn erase_type_described<T: Send + 'static>(
    operation: SqlOperation<(T, Option<ChangeDescription>)>,
) -> SqlOperation<(AnyResult, Option<ChangeDescription>)> {
    Box::new(move |sql| {
        let running = operation(sql);
        Box::pin(async move {
            let (result, description) = running.await?;
            Ok((Box::new(result) as AnyResult, description))
        })
    })
}

/// Converts the operation's result back to its type; `T` must be the type that was erased.
pub(crate) fn restore_type<T: Send + 'static>(
    running: BoxFuture<'_, Result<AnyResult>>,
) -> BoxFuture<'_, Result<T>> {
    Box::pin(async move {
        let result = running.await?.downcast::<T>();
        Ok(*result.expect("the result has the type that was erased"))
    })
}
