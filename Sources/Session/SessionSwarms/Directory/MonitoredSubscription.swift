package import SessionProtocol

/// A subscription as far as storage servers are concerned.
package struct MonitoredSubscription: Hashable, Sendable {
    /// Names its row in the store. Always of the same account.
    package let id: SubscriptionID
    package let account: AccountID
    /// Bytes of its ``MonitorEntry``, by which requests are divided.
    package let entryByteCount: Int

    package init(id: SubscriptionID, account: AccountID, entryByteCount: Int) {
        self.id = id
        self.account = account
        self.entryByteCount = entryByteCount
    }
}
