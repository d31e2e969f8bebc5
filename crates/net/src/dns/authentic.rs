//! Connections to name servers. They can set the AD bit in their queries, which asks whether the answer was validated
//! (RFC 6840 5.7): a validating resolver sets the bit in its answer only if asked.

use std::net::IpAddr;
use std::pin::Pin;

use hickory_resolver::config::ConnectionConfig;
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::xfer::{DnsExchange, DnsHandle};
use hickory_resolver::proto::op::DnsRequest;
use hickory_resolver::{ConnectionProvider, PoolContext};

type Exchange = DnsExchange<TokioRuntimeProvider>;
type Connecting<C> = Pin<Box<dyn Future<Output = Result<C, NetError>> + Send + 'static>>;

/// Provider of connections over UDP and TCP.
#[derive(Clone)]
pub(super) struct AdBitProvider {
    provider: TokioRuntimeProvider,
    asks_for_ad: bool,
}

impl AdBitProvider {
    pub(super) fn new(asks_for_ad: bool) -> Self {
        Self { provider: TokioRuntimeProvider::default(), asks_for_ad }
    }
}

/// Connection that sets the AD bit in its queries if `asks_for_ad`.
#[derive(Clone)]
pub(super) struct AdBitConnection {
    exchange: Exchange,
    asks_for_ad: bool,
}

impl DnsHandle for AdBitConnection {
    type Response = <Exchange as DnsHandle>::Response;
    type Runtime = TokioRuntimeProvider;

    fn send(&self, mut request: DnsRequest) -> Self::Response {
        request.metadata.authentic_data = self.asks_for_ad;
        self.exchange.send(request)
    }
}

impl ConnectionProvider for AdBitProvider {
    type Conn = AdBitConnection;
    type FutureConn = Connecting<AdBitConnection>;
    type RuntimeProvider = TokioRuntimeProvider;

    fn new_connection(
        &self,
        ip: IpAddr,
        config: &ConnectionConfig,
        cx: &PoolContext,
    ) -> Result<Self::FutureConn, NetError> {
        let connecting = self.provider.new_connection(ip, config, cx)?;
        let asks_for_ad = self.asks_for_ad;
        Ok(Box::pin(async move { Ok(AdBitConnection { exchange: connecting.await?, asks_for_ad }) }))
    }

    fn runtime_provider(&self) -> &Self::RuntimeProvider {
        &self.provider
    }
}
