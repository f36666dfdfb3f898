/// The data of a subscription needed to monitor it.
package struct MonitoredSubscription: Hashable, Sendable {
    /// The subscription's row in the store. An id always belongs to the same account.
    package let id: SubscriptionID
    package let account: AccountID
    /// The size of its ``MonitorEntry`` in bytes, used to split requests.
    package let entryByteCount: Int

    package init(id: SubscriptionID, account: AccountID, entryByteCount: Int) {
        self.id = id
        self.account = account
        self.entryByteCount = entryByteCount
    }
}

/// A change of the monitored subscriptions.
package enum MonitoringChange: Hashable, Sendable {
    /// Adds or renews a stored subscription.
    case set(MonitoredSubscription)
    /// Removes an ended subscription. Further reports of its messages are dropped.
    case remove(SubscriptionID)
}
