/// Changes of subscriptions that have not reached the ``MonitorStateMachine`` yet, in order. Changes within a few milliseconds are combined into one
/// request to each storage server.
struct PendingChanges: Sendable {
    enum Change: Hashable, Sendable {
        case set([MonitoredSubscription])
        case remove([SubscriptionID])
    }

    private var changes: [Change] = []

    var isEmpty: Bool { changes.isEmpty }

    mutating func set(_ subscription: MonitoredSubscription) {
        if case .set(var others)? = changes.last {
            // Cleared first, so that the array is appended to in place.
            changes[changes.count - 1] = .set([])
            others.append(subscription)
            changes[changes.count - 1] = .set(others)
        } else {
            changes.append(.set([subscription]))
        }
    }

    mutating func remove(_ id: SubscriptionID) {
        if case .remove(var others)? = changes.last {
            changes[changes.count - 1] = .remove([])
            others.append(id)
            changes[changes.count - 1] = .remove(others)
        } else {
            changes.append(.remove([id]))
        }
    }

    /// Removes and returns all changes.
    mutating func take() -> [Change] {
        defer { changes = [] }
        return changes
    }
}
