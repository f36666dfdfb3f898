import Core
import SessionProtocol

/// Decides on the requests of one body, each as if the previous ones had been carried out. A value without I/O.
struct RequestBatch {
    /// The stored rows of a name, and their changes.
    struct NameState {
        /// The subscription's row before the batch.
        let row: (id: Int64, signedAt: Int64)?
        var current: StoredSubscription?
        var left: UnsubscribedName?
        var used: AheadTimes
        /// The subscription to store; nil if there is none.
        var form: SubscriptionForm?
        /// Whether to delete the row and its pending notifications, even if the name is subscribed again.
        var endsRow = false
        var leavesName = false
        /// Whether a subscription of this batch succeeded: then it keeps its place.
        var isAnswered = false

        init(row: (id: Int64, signedAt: Int64)?, left: UnsubscribedName?, used: AheadTimes, at now: Int64) {
            self.row = row
            self.left = left
            self.used = used
            current = row.map { used.stored(signedAt: $0.signedAt, at: now) }
        }

        func isSubscribed(at now: Int64) -> Bool { current.map { !$0.isExpired(at: now) } ?? false }

        /// A request was accepted. The replaced subscription's time is noted too: an earlier release stores it without.
        mutating func noteTimes(_ kind: AheadTime.Kind, _ signedAt: Int64, at now: Int64) {
            if let current { used.note(.subscription, current.signedAt, at: now) }
            used.note(kind, signedAt, at: now)
        }
    }

    /// The number of an account's devices that those of one batch may replace: to find each looks at all of the account's places.
    static let replacementLimit = 10

    let rules: SubscriptionRules
    /// The error if limits of the node, not of the account, refuse a new subscription; nil otherwise. Receives its name and the time of its signature: a
    /// name that ends in the batch may be subscribed again, with a later one.
    let refusesNew: @Sendable (_ subscription: [UInt8]) -> RequestError?
    /// Unix seconds.
    let now: Int64
    /// The states of the names in this batch.
    private(set) var names: [[UInt8]: NameState]
    /// Number of subscriptions that are not expired, by account.
    var deviceCounts: [AccountID: Int]
    /// The devices of accounts that may need more places than they have.
    var places: [AccountID: DevicePlaces]
    /// Accounts that get no further place in this batch.
    var closedAccounts: Set<AccountID> = []
    var replacedCounts: [AccountID: Int] = [:]
    /// Number of devices by push service, for those that ``SubscriptionRules/maximumDevicesPerOrigin`` applies to. Keyed by
    /// ``Subscriptions/originMark(of:)``.
    var origins: [Int64: Int]
    private(set) var fullOriginCount = 0
    /// Subscriptions that end because another device of their account gets their place. They leave no name: they may be subscribed again.
    private(set) var replaced: [DevicePlace] = []

    /// - Parameter origin: the mark of the device's push service; nil for other services.
    mutating func apply(_ request: SessionRequest, named name: [UInt8], at origin: Int64? = nil) -> RequestAnswer {
        var state = names[name] ?? NameState(row: nil, left: nil, used: AheadTimes(), at: now)
        let authority = request.form.authority
        let (account, signedAt) = (authority.account, authority.signedAt)
        do throws(RequestError) {
            let answer: RequestAnswer
            switch request {
            case .subscribe(let form):
                let place = DevicePlace(
                    name: name, row: .max, signer: .init(form.authority.delegation), signedAt: signedAt, wasDelivered: false,
                    origin: origin)
                var loser: DevicePlace?
                let change = try rules.decideSubscription(
                    signedAt: signedAt, stored: state.current, left: state.left, used: state.used,
                    deviceCount: occupied(of: account, for: place, loser: &loser), at: now)
                if change == .insert {
                    // An expired row of the name counts until it is replaced here, and so does the device that makes room.
                    let isCounted = state.row != nil && !state.endsRow
                    let makesRoom = isCounted || loser?.origin == origin
                    if let limit = rules.maximumDevicesPerOrigin, let origin, !makesRoom, let count = origins[origin], count >= limit {
                        fullOriginCount += 1
                        throw .limited
                    }
                    if let refusal = refusesNew(name + withUnsafeBytes(of: signedAt, Array.init)) { throw refusal }
                    if let origin, !isCounted { origins[origin]? += 1 }
                    if let loser { replace(loser, of: account) }
                    // The row that is replaced here is expired, or gave its place to another device.
                    state.endsRow = state.row != nil
                    deviceCounts[account, default: 0] += 1
                }
                places[account]?.remove(name)
                places[account]?.add(place)
                state.isAnswered = true
                state.form = form
                state.noteTimes(.subscription, signedAt, at: now)
                state.current = state.used.stored(signedAt: signedAt, at: now)
                answer = change == .insert ? .added : .updated
            case .unsubscribe:
                switch try rules.decideUnsubscription(signedAt: signedAt, stored: state.current, used: state.used, at: now) {
                case .nothingToRemove: return .removed(false)
                case .remove(let left):
                    deviceCounts[account, default: 0] -= 1
                    places[account]?.remove(name)
                    if let origin { origins[origin]? -= 1 }
                    state.left = left
                    state.leavesName = true
                    state.form = nil
                    state.noteTimes(.unsubscription, signedAt, at: now)
                    state.current = nil
                    state.endsRow = state.row != nil
                    answer = .removed(true)
                }
            }
            names[name] = state
            return answer
        } catch {
            return .failed(error)
        }
    }

    // MARK: Places

    /// The rows that end because of ``replaced``, without those of names in this batch, which end by their ``NameState/endsRow``.
    var replacedRows: [(id: Int64, signedAt: Int64)] {
        replaced.lazy.filter { names[$0.name] == nil }.map { (id: $0.row, signedAt: $0.signedAt) }
    }

    /// The number of an account's places that a new device does not get.
    ///
    /// - Parameter loser: set to the device that makes room for it, if the account is full.
    private mutating func occupied(of account: AccountID, for new: DevicePlace, loser: inout DevicePlace?) -> Int {
        let count = deviceCounts[account, default: 0]
        guard count >= rules.maximumDevicesPerAccount, let places = places[account], !closedAccounts.contains(account) else { return count }
        guard case .replacing(let found) = places.room(for: new, keeping: { names[$0]?.isAnswered == true }) else {
            closedAccounts.insert(account)
            return count
        }
        loser = found
        // One for one, even above a limit that was lowered.
        return rules.maximumDevicesPerAccount - 1
    }

    private mutating func replace(_ loser: DevicePlace, of account: AccountID) {
        replaced.append(loser)
        replacedCounts[account, default: 0] += 1
        if replacedCounts[account] == Self.replacementLimit { closedAccounts.insert(account) }
        deviceCounts[account, default: 0] -= 1
        if let origin = loser.origin { origins[origin]? -= 1 }
        places[account]?.remove(loser.name)
        guard var state = names[loser.name] else { return }
        state.current = nil
        state.form = nil
        state.endsRow = state.row != nil
        names[loser.name] = state
    }
}
