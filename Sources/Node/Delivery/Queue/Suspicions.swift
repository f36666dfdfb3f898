/// A possible cause of a failed post.
package enum Suspect: Hashable, Sendable {
    case known(PushRecipient)
    /// Recipients that gorush has accepted nothing for.
    case strangers
}

/// The failed posts in a row that need different causes: each has suspects, and no two have one in common.
struct Suspicions: Sendable {
    private var posts: [Set<Suspect>] = []

    /// At least so many suspects must be guilty if gorush is not.
    var count: Int { posts.count }

    func contains(_ suspect: Suspect) -> Bool { posts.contains { $0.contains(suspect) } }

    /// - Parameter suspects: those of a failed post.
    mutating func add(_ suspects: Set<Suspect>) {
        let related = posts.indices.filter { !posts[$0].isDisjoint(with: suspects) }
        guard let index = related.first else { return posts.append(suspects) }
        // The same cause, with fewer suspects.
        if related.count == 1, suspects.count < posts[index].count { posts[index] = suspects }
    }
}
