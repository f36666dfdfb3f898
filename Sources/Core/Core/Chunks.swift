extension RandomAccessCollection where Index == Int {
    /// Consecutive parts of `count` elements, the last of which may be shorter.
    package func chunks(of count: Int) -> some Sequence<SubSequence> {
        stride(from: startIndex, to: endIndex, by: count).lazy.map { self[$0..<Swift.min($0 + count, endIndex)] }
    }
}
