import Synchronization

/// Hands out 0, 1, 2 and so on to tasks that share work.
final class WorkNumbers: Sendable {
    private let next = Atomic(0)
    private let count: Int

    init(_ count: Int) {
        self.count = count
    }

    /// nil when all were taken.
    func take() -> Int? {
        let number = next.add(1, ordering: .relaxed).oldValue
        return number < count ? number : nil
    }
}
