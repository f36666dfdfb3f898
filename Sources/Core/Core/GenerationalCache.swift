// Public although only this package uses it: the compiler inlines and specializes public functions across modules, but not package ones
// (Swift 6.3).

/// A bounded dictionary that evicts its oldest entries in bulk, so that no operation has to find the oldest one.
///
/// Entries are in two generations of at most `capacity` keys. When the young generation is full, it becomes the old one, and the old one is
/// dropped. So the last `capacity` keys that were set are always found, and at most twice as many entries are kept.
///
/// Keys are kept as 64-bit hashes, seeded anew in each process: most are used once, and a public key or a digest takes ten times as much memory. Of a
/// million keys, two have the same hash with a probability below 10⁻⁷, and nobody outside the process can choose them.
public struct GenerationalCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    @usableFromInline let capacity: Int
    @usableFromInline var young: [Int: Value] = [:]
    @usableFromInline var old: [Int: Value] = [:]

    /// - Parameter capacity: Keys per generation, at least 1.
    @inlinable
    public init(capacity: Int) {
        self.capacity = max(capacity, 1)
    }

    /// The entries in memory: a key that was set again after its generation became the old one counts twice.
    @inlinable public var count: Int { young.count + old.count }

    /// Whether there is a value of the key. Does not make the entry younger.
    @inlinable
    public func contains(_ key: Key) -> Bool {
        let hash = key.hashValue
        return young.index(forKey: hash) != nil || old.index(forKey: hash) != nil
    }

    /// Reading does not make an entry younger.
    @inlinable
    public func value(of key: Key) -> Value? {
        let hash = key.hashValue
        return young[hash] ?? old[hash]
    }

    /// Reads an entry and makes it young, so that entries in use stay.
    @inlinable
    public mutating func refreshedValue(of key: Key) -> Value? {
        let hash = key.hashValue
        if let value = young[hash] { return value }
        guard let value = old[hash] else { return nil }
        set(value, of: key)
        return value
    }

    /// Sets a value and makes the entry young. When the young generation is full, the old one is dropped.
    @inlinable
    public mutating func set(_ value: Value, of key: Key) {
        let hash = key.hashValue
        if young.count >= capacity, young.index(forKey: hash) == nil { endGeneration() }
        young[hash] = value
    }

    /// Makes the young generation the old one, and drops the old one. Called at intervals, it drops the entries that are not in use.
    @inlinable
    public mutating func endGeneration() {
        (old, young) = (young, [:])
    }

    /// Removes the key from both generations.
    @inlinable
    public mutating func remove(_ key: Key) {
        let hash = key.hashValue
        young[hash] = nil
        old[hash] = nil
    }

    /// Removes all entries and releases their memory.
    @inlinable
    public mutating func removeAll() {
        (young, old) = ([:], [:])
    }
}

extension GenerationalCache where Value == Void {
    /// - Returns: false when the key was there already.
    @inlinable
    public mutating func insert(_ key: Key) -> Bool {
        guard !contains(key) else { return false }
        set((), of: key)
        return true
    }
}
