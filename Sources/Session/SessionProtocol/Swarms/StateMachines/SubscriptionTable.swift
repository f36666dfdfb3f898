import Core

/// Subscriptions by id and by account, in reusable slots: a million of them without an allocation each.
struct SubscriptionTable: Sendable {
    struct Slot: Sendable {
        var id: SubscriptionID
        /// The sequence number in the swarm; 0 if in no swarm, or free.
        var sequence: UInt64
        /// The first sequence number in this swarm. A server that was asked with this number may report messages before it is asked with the latest
        /// one.
        var firstSequence: UInt64 = 0
        var account: Int32
        /// The next slot of the same account; −1 for none.
        var next: Int32
        var byteCount: Int32
        /// Until then, in seconds of the clock, the requests made so far count: see ``SubscriptionTable/admitsRequest(ofSlot:at:interval:burst:)``.
        var countedUntil: Int32 = 0
    }

    struct Account: Sendable {
        var id: AccountID
        /// Index of the swarm; −1 for none.
        var swarm: Int32
        var first: Int32
        /// For an additional place, which has copies of the slots: the index of the account that it belongs to. −1 for an account itself.
        var owner: Int32 = -1
    }

    /// A subscription's place in a swarm that it has left, and the first and last sequence numbers that it had there.
    typealias Departure = (swarm: Int, firstSequence: UInt64, sequence: UInt64)

    var slots: ContiguousArray<Slot> = []
    private var freeSlots: [Int32] = []
    private var slotIndex = PlaceIndex()
    var accounts: ContiguousArray<Account> = []
    var freeAccounts: [Int32] = []
    private var accountIndex = PlaceIndex()
    /// Additional places by account; few accounts have any.
    var places: [Int32: [Place]] = [:]
    private let hashKey = AccountHashKey()

    var count: Int { slotIndex.count }
    var accountCount: Int { accountIndex.count }

    /// Reserves capacity before many subscriptions are added.
    mutating func reserveCapacity(adding count: Int) {
        // Smaller additions rely on the geometric growth of the arrays.
        guard count > slots.count else { return }
        slots.reserveCapacity(slots.count + count)
        accounts.reserveCapacity(accounts.count + count)
        slotIndex.reserveCapacity(slotIndex.count + count) { [slots] in Self.hash(slots[$0].id) }
        accountIndex.reserveCapacity(accountIndex.count + count) { [accounts, hashKey] in accounts[$0].id.hash(keyedBy: hashKey) }
    }

    /// Not keyed, because ids are assigned by the store.
    private static func hash(_ id: SubscriptionID) -> UInt64 {
        let product = (UInt64(bitPattern: id.rawValue) ^ 0x9E37_79B9_7F4A_7C15).multipliedFullWidth(by: 0xD6E8_FEB8_6659_FD93)
        return product.high ^ product.low
    }

    private func slot(of id: SubscriptionID) -> Int? { slotIndex.find(Self.hash(id)) { slots[$0].id == id } }

    func index(of account: AccountID) -> Int? {
        accountIndex.find(account.hash(keyedBy: hashKey)) { accounts[$0].id == account }
    }

    /// The slots of a subscription: one, and one for each additional place of its account. None if it is unknown.
    func slots(of id: SubscriptionID) -> [Int] { slot(of: id).map { [$0] + copies(ofSlot: $0) } ?? [] }

    /// - Parameters:
    ///   - byteCount: The size of its monitor entry in bytes.
    ///   - swarm: Finds the index of the swarm of a new account.
    /// - Returns: Its slots: see ``slots(of:)``. Existing slots keep their sequence numbers.
    mutating func set(_ id: SubscriptionID, account: AccountID, byteCount: Int, swarm: (AccountID) -> Int?) -> [Int] {
        let size = Int32(clamping: byteCount)
        let known = slots(of: id)
        for slot in known { slots[slot].byteCount = size }
        guard known.isEmpty else { return known }
        let owner = index(of: account) ?? add(account, swarm: swarm(account))
        let slot = link(id, byteCount: size, to: owner)
        slotIndex.insert(slot) { [slots] in Self.hash(slots[$0].id) }
        guard let further = places[Int32(owner)] else { return [slot] }
        return [slot] + further.map { link(id, byteCount: size, to: Int($0.account)) }
    }

    mutating func link(_ id: SubscriptionID, byteCount: Int32, to owner: Int) -> Int {
        let made = Slot(id: id, sequence: 0, account: Int32(owner), next: accounts[owner].first, byteCount: byteCount)
        let slot = Self.add(made, to: &slots, &freeSlots)
        accounts[owner].first = Int32(slot)
        return slot
    }

    private mutating func add(_ account: AccountID, swarm: Int?) -> Int {
        let index = append(Account(id: account, swarm: swarm.map { Int32($0) } ?? -1, first: -1))
        accountIndex.insert(index) { [accounts, hashKey] in accounts[$0].id.hash(keyedBy: hashKey) }
        return index
    }

    mutating func append(_ made: Account) -> Int { Self.add(made, to: &accounts, &freeAccounts) }

    private static func add<Element>(_ made: Element, to elements: inout ContiguousArray<Element>, _ free: inout [Int32]) -> Int {
        guard let index = free.popLast() else {
            elements.append(made)
            return elements.count - 1
        }
        elements[Int(index)] = made
        return Int(index)
    }

    /// - Returns: The swarms of which it was a member.
    mutating func remove(_ id: SubscriptionID) -> [Departure] {
        guard let slot = slot(of: id) else { return [] }
        let owner = Int(slots[slot].account)
        let left = ([slot] + copies(ofSlot: slot)).compactMap { free($0) }
        slotIndex.remove(slot) { [slots] in Self.hash(slots[$0].id) }
        if accounts[owner].first < 0 {
            freeAccounts += places.removeValue(forKey: Int32(owner))?.map(\.account) ?? []
            accountIndex.remove(owner) { [accounts, hashKey] in accounts[$0].id.hash(keyedBy: hashKey) }
            freeAccounts.append(Int32(owner))
        }
        return left
    }

    /// - Returns: The swarm of which it was a member, if any.
    mutating func free(_ slot: Int) -> Departure? {
        let (owner, one) = (Int(slots[slot].account), slots[slot])
        let swarm = one.sequence == 0 ? nil : swarm(ofAccount: owner)
        unlink(Int32(slot), from: owner)
        slots[slot].sequence = 0
        freeSlots.append(Int32(slot))
        return swarm.map { ($0, one.firstSequence, one.sequence) }
    }

    private mutating func unlink(_ slot: Int32, from owner: Int) {
        let next = slots[Int(slot)].next
        guard accounts[owner].first != slot else {
            accounts[owner].first = next
            return
        }
        var place = accounts[owner].first
        while place >= 0, slots[Int(place)].next != slot { place = slots[Int(place)].next }
        if place >= 0 { slots[Int(place)].next = next }
    }

    /// The subscriptions of all accounts that meet a condition.
    func ids(where condition: (AccountID) -> Bool) -> [SubscriptionID] {
        accounts.indices.filter { accounts[$0].first >= 0 && accounts[$0].owner < 0 && condition(accounts[$0].id) }
            .flatMap { slots(ofAccount: $0).map { slots[$0].id } }
    }

    /// Whether a subscription may be asked for now, and counts it if so. One number per subscription does it: each request moves the time until
    /// which requests count by the interval, and it may be ahead by as many intervals as the burst has.
    ///
    /// - Parameters:
    ///   - interval: the mean time between two requests.
    ///   - burst: the number of requests that may come at once.
    mutating func admitsRequest(ofSlot slot: Int, at now: Instant, interval: Duration, burst: Int) -> Bool {
        let (seconds, interval) = (now.sinceEpoch.components.seconds, interval.components.seconds)
        let countedUntil = max(Int64(slots[slot].countedUntil), seconds) + interval
        guard countedUntil <= seconds + Int64(burst) * interval else { return false }
        slots[slot].countedUntil = Int32(clamping: countedUntil)
        return true
    }

    // MARK: Slots

    func id(ofSlot slot: Int32) -> SubscriptionID { slots[Int(slot)].id }
    func byteCount(ofSlot slot: Int32) -> Int { Int(slots[Int(slot)].byteCount) }
    func swarm(ofSlot slot: Int) -> Int? { swarm(ofAccount: Int(slots[slot].account)) }

    /// - Returns: The sequence number that the slot had; nil for none.
    mutating func setSequence(_ sequence: UInt64, ofSlot slot: Int) -> UInt64? {
        let former = slots[slot].sequence
        if former == 0 { slots[slot].firstSequence = sequence }
        slots[slot].sequence = sequence
        return former == 0 ? nil : former
    }

    /// Whether a member has neither left nor received another sequence number.
    func isLive(_ member: MonitorStateMachine.Swarm.Member) -> Bool { slots[Int(member.slot)].sequence == member.sequence }

    /// As ``isLive(_:)``, or if it has received another sequence number, but this was its first.
    func isLiveOrFirst(_ member: MonitorStateMachine.Swarm.Member) -> Bool {
        let slot = slots[Int(member.slot)]
        return slot.sequence != 0 && (slot.sequence == member.sequence || slot.firstSequence == member.sequence)
    }

    // MARK: Accounts

    private func swarm(ofAccount index: Int) -> Int? { accounts[index].swarm < 0 ? nil : Int(accounts[index].swarm) }

    func contains(_ account: AccountID) -> Bool { index(of: account) != nil }

    /// The number of an account's subscriptions.
    func count(of account: AccountID) -> Int { index(of: account).map { slots(ofAccount: $0).count } ?? 0 }

    /// Whether the sequence numbers of any of the account's subscriptions in a swarm meet a condition.
    func contains(_ account: AccountID, inSwarm swarm: Int, where condition: (_ first: UInt64, _ last: UInt64) -> Bool) -> Bool {
        guard let owner = index(of: account), let index = place(of: owner, inSwarm: swarm) else { return false }
        var slot = accounts[index].first
        while slot >= 0 {
            let one = slots[Int(slot)]
            if one.sequence != 0, condition(one.firstSequence, one.sequence) { return true }
            slot = slots[Int(slot)].next
        }
        return false
    }

    func place(of owner: Int, inSwarm swarm: Int) -> Int? {
        if accounts[owner].swarm == Int32(swarm) { return owner }
        guard let further = places[Int32(owner)] else { return nil }
        return further.first { accounts[Int($0.account)].swarm == Int32(swarm) }.map { Int($0.account) }
    }

    func account(ofSlot slot: Int32) -> AccountID { accounts[Int(slots[Int(slot)].account)].id }

    /// Recomputes the swarm of every account after a change of the map.
    ///
    /// - Parameter swarm: Finds the index of an account's swarm.
    /// - Returns: The slots that have moved to another swarm, and that swarm. They have no sequence number.
    mutating func assign(_ swarm: (AccountID) -> Int?) -> [(slot: Int, swarm: Int)] {
        var moved: [(slot: Int, swarm: Int)] = []
        for index in accounts.indices where accounts[index].first >= 0 && accounts[index].owner < 0 {
            let found = swarm(accounts[index].id).map { Int32($0) } ?? -1
            guard found != accounts[index].swarm else { continue }
            accounts[index].swarm = found
            for slot in slots(ofAccount: index) {
                slots[slot].sequence = 0
                if found >= 0 { moved.append((slot, Int(found))) }
            }
        }
        return moved
    }

    /// Replaces the indexes of swarms after swarms were added or removed.
    mutating func renumberSwarms(_ place: (Int) -> Int?) {
        for index in accounts.indices where accounts[index].swarm >= 0 {
            accounts[index].swarm = place(Int(accounts[index].swarm)).map { Int32($0) } ?? -1
        }
    }
}
