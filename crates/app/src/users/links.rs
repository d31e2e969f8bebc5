//! Links to pages of the portal that work without signing in. The portal serves these paths.

use crate::App;

impl App {
    /// Sets the base URL of the portal, such as `https://mail.example.com`. Call once, before anybody is invited.
    pub fn set_portal_base(&self, base_url: String) {
        // A second base URL would belong to another listener: keep the first.
        let _ = self.inner.portal_base.set(base_url);
    }

    fn link(&self, page: &str, token: &str) -> String {
        let default = || format!("https://{}", self.inner.hostname);
        let base = self.inner.portal_base.get_or_init(default);
        format!("{}/{page}?token={token}", base.trim_end_matches('/'))
    }

    pub(crate) fn sign_in_link(&self, token: &str) -> String {
        self.link("sign_in", token)
    }

    pub(crate) fn reset_link(&self, token: &str) -> String {
        self.link("reset_password", token)
    }

    pub(crate) fn invitation_link(&self, token: &str) -> String {
        self.link("invitation", token)
    }

    pub(crate) fn set_up_link(&self, token: &str) -> String {
        self.link("set_up", token)
    }
}
