//! Signing out.

use crate::answer::Answer;
use crate::redirect::see_other;
use crate::session;
use crate::visit::Form;

pub(super) async fn submit(form: Form) -> Answer {
    form.visit.app().sign_out(&form.visit.session_secret, form.visit.peer.address).await?;
    let mut response = see_other("/sign_in?done=signed-out");
    session::end(&mut response, form.visit.peer);
    Ok(response)
}
