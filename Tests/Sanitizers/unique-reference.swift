import Dispatch

// Correct: who finds its reference to be the only one may write, after the others have read and let go. That is what copy on write rests on. The
// counting is in Swift's runtime, into which the thread sanitizer does not see.
final class Storage: @unchecked Sendable {
    var value = 0
}

/// What another thread holds, until it lets go.
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
