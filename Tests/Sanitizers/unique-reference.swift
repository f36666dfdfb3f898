import Dispatch

// A correct program: a thread that holds the only reference may write, since the others have read and released theirs. Copy on write depends on
// this. The counting is in Swift's runtime, which the thread sanitizer does not instrument.
final class Storage: @unchecked Sendable {
    var value = 0
}

/// The reference of another thread, until it releases it.
final class Holder: @unchecked Sendable {
    var storage: Storage?
    init(_ storage: Storage) { self.storage = storage }
}

for number in 0..<1000 {
    var storage = Storage()
    let holder = Holder(storage)
    DispatchQueue.global().async {
        if holder.storage?.value == -1 { print(number) }
        holder.storage = nil
    }
    while !isKnownUniquelyReferenced(&storage) {}
    storage.value = number
}
