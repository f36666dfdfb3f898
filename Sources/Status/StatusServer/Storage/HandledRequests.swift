package import Core
package import Storage

/// Requests that another server handled before this node took over: if repeated, they are answered, but devices are not notified again.
package enum HandledRequests {
    /// - Parameters:
    ///   - envelopes: the ids of the requests' envelopes, 32 bytes each.
    ///   - now: the current time; they are pruned together with answers of this time.
    package static func remember(_ envelopes: [[UInt8]], at now: Timestamp) -> StoreCommand<Void> {
        .change(envelopes.map { AnswerStorage.remember(AnswerStorage.handledElsewhere, to: $0, at: now) })
    }
}
