//! Searches that a person has saved: links above the list of messages.

use postroad_app::access::Operation;
use postroad_model::SavedSearchId;

use super::search::Search;
use crate::answer::Answer;
use crate::display::beginning;
use crate::path::Path;
use crate::redirect::see_other;
use crate::visit::Form;

/// Maximum length of a name made of the search's words, for a search that is saved without a name.
const NAME_BYTES_MAX: usize = 60;

pub(super) async fn save(Path(server): Path<i64>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    let caller = visit.caller(server, Operation::MessagesSearch).await?;
    let search = Search::of(&fields);
    let (words, query) = (search.link_text(), search.query());
    let name = match fields.text("name").trim() {
        "" => beginning(&words, NAME_BYTES_MAX),
        name => name,
    };
    visit.app().save_search(&visit.person, &caller, name, &query).await?;
    Ok(see_other(&format!("/servers/{server}/messages{query}")))
}

pub(super) async fn forget(Path(server): Path<i64>, form: Form) -> Answer {
    let Form { visit, fields } = form;
    visit.caller(server, Operation::MessagesSearch).await?;
    let id = SavedSearchId(fields.number("search").unwrap_or_default());
    visit.app().forget_search(&visit.person, id).await?;
    Ok(see_other(&format!("/servers/{server}/messages{}", Search::of(&fields).query())))
}
